"""The report of a run: a self-contained page that opens from disk, made from the run's folder."""
