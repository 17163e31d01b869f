"""Runs that a signal ends while a piece of training is under way, and the command that goes on with them."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.experiment.train_command import main
from app.run.learners import ProgramLearner

Train = Callable[..., Any]
LONGER = ("train.epochs=3", "train.optimizer=momentum", "costs=false")


@contextmanager
def stopped_at(piece: int, by: int = signal.SIGINT) -> Iterator[None]:
    """Lets a signal come while a piece of training is under way."""
    train, count = ProgramLearner.train, itertools.count(1)

    def signalled(self: ProgramLearner, batches: Any) -> Any:
        if next(count) == piece:
            os.kill(os.getpid(), by)
        return train(self, batches)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramLearner, "train", signalled)
        yield


@pytest.fixture
def resume(train: Train, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`train.py --resume`, in this process."""

    def resume(*words: str, folder: str = "run") -> tuple[int, str, str]:
        status = main(["--resume", folder, *words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return status, printed.out, printed.err

    return resume


@pytest.fixture
def interrupted(train: Train) -> Callable[..., Any]:
    """Runs that Ctrl-C ended."""

    def interrupted(piece: int = 11, *words: str, folder: str = "run") -> Any:
        with stopped_at(piece):
            return train(*LONGER, *words, folder=folder)

    return interrupted
