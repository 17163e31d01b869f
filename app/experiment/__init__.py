"""Runs with reports: the functions `train`, `resume` and `compare`, and their commands."""
