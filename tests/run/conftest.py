"""Runs of train.py, what they are run on, and what goes on with them when they were interrupted."""

from interrupted_runs import _wholes, interrupted, resume, whole
from runs_of_train import images, start, tiny, train, type_it

__all__ = ["_wholes", "images", "interrupted", "resume", "start", "tiny", "train", "type_it", "whole"]
