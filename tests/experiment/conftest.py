"""Runs of train.py, and what they are run on."""

from runs_of_train import images, start, tiny, train, type_it

__all__ = ["images", "start", "tiny", "train", "type_it"]
