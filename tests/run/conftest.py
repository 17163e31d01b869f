"""Runs of train.py, and the same interrupted and resumed."""

from interrupted_runs import interrupted, resume, whole
from runs_of_train import images, start, tiny, train, type_it

__all__ = ["images", "interrupted", "resume", "start", "tiny", "train", "type_it", "whole"]
