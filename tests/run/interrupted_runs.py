"""Runs that Ctrl-C ends while a piece of training is under way, and the command that resumes them."""

import itertools
import os
import shutil
import signal
from contextlib import contextmanager

import pytest

from app.experiment.train_command import main
from app.run.learners import ProgramLearner

LONGER = ("train.epochs=3", "train.optimizer=momentum", "costs=false")
_wholes = {}


@contextmanager
def stopped_at(piece):
    """Press Ctrl-C while a piece of training is under way."""
    train, count = ProgramLearner.train, itertools.count(1)

    def signalled(self, batches):
        if next(count) == piece:
            os.kill(os.getpid(), signal.SIGINT)
        return train(self, batches)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramLearner, "train", signalled)
        yield


@pytest.fixture
def interrupted(train):
    """Runs `train.py` and interrupts it."""

    def interrupted(piece=11, *words, folder="run"):
        with stopped_at(piece):
            return train(*LONGER, *words, folder=folder)

    return interrupted


@pytest.fixture
def resume(train, capsys):
    """Runs `train.py --resume` in this process; gives its status, output and errors."""

    def resume(*words, folder="run"):
        status = main(["--resume", folder, *words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return status, printed.out, printed.err

    return resume


@pytest.fixture
def whole(train, tmp_path, tmp_path_factory):
    """The folder of an uninterrupted run, which is made once for all tests."""

    def whole(*words):
        if words not in _wholes:
            assert train(*LONGER, *words, folder="whole").status == 0
            _wholes[words] = tmp_path_factory.mktemp("whole") / "whole"
            shutil.move(tmp_path / "whole", _wholes[words])
        return _wholes[words]

    return whole
