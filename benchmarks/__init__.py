"""The reference work done by this framework and by others, side by side. `python -m benchmarks` runs it."""
