"""Runs of train.py, and what they are run on."""

from runs_of_train import images, start, tiny, train

__all__ = ["images", "start", "tiny", "train"]
