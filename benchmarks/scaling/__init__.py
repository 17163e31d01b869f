"""How training grows with the number of ranks, as derived and as measured. `python -m benchmarks.scaling` runs it."""
