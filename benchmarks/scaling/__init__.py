"""How much faster two ranks train than one. `python -m benchmarks.scaling` measures it."""
