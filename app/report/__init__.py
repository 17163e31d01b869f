"""The report of a run: one page that holds everything and opens from disk, made of what lies in the run's folder."""
