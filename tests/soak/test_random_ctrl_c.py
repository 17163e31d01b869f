"""Ctrl-C at random moments of training, in processes of their own: each ends with the command that resumes it."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import forked
import pytest
from runs_of_train import QUICK_END, ROOT

ENDLESS = ("--config", ROOT / "configs" / "quick.yaml", "train.epochs=1000000", *QUICK_END, "output=run")
PROCESSES = 24


@pytest.mark.parametrize(
    "words",
    [("train.log_every=1",), ("train.log_every=100",), ("model.dropout=0.2", "train.log_every=10"), ("engine=eager",)],
    ids=" ".join,
)
def test_ctrl_c_at_a_random_moment_ends_training(words: tuple[str, ...], tmp_path: Path):
    draw = random.Random(0)
    for number in range(PROCESSES):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = forked.start([ROOT / "train.py", *ENDLESS, *words], cwd=folder)
        assert command.stdout is not None
        while "iteration" not in command.stdout.readline():
            assert command.poll() is None
        time.sleep(draw.uniform(0, 0.3))
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=10)
        lines = err.splitlines()
        assert (command.returncode, lines[0], len(lines)) == (130, "interrupted. Resume with:", 2), (number, err)
        assert lines[1].endswith("opsmith train --resume run")
