"""Checkpoints of a run: files from which it goes on, bit for bit, whatever ended it."""
