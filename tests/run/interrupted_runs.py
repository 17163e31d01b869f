"""Runs that a signal ends while a piece of training is under way, and the command that goes on with them."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
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


@pytest.fixture(scope="session")
def _wholes() -> dict[tuple[str, ...], Path]:
    return {}


@pytest.fixture
def whole(
    train: Train, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, _wholes: dict[tuple[str, ...], Path]
) -> Callable[..., Path]:
    """The folder of a run that nothing interrupted. It is made once for all tests."""

    def whole(*words: str) -> Path:
        if words not in _wholes:
            assert train(*LONGER, *words, folder="whole").status == 0
            _wholes[words] = tmp_path_factory.mktemp("whole") / "whole"
            shutil.move(tmp_path / "whole", _wholes[words])
        return _wholes[words]

    return whole


@pytest.fixture
def interrupted(train: Train) -> Callable[..., Any]:
    """Runs that Ctrl-C ended."""

    def interrupted(piece: int = 11, *words: str, folder: str = "run") -> Any:
        with stopped_at(piece):
            return train(*LONGER, *words, folder=folder)

    return interrupted
