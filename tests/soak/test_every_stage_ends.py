"""One SIGTERM, or a second Ctrl-C, ends every command at every stage, whatever its operator does, and its processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stuck_operators import STAGES, TRAIN, stuck


@pytest.mark.parametrize("how", ["native_loop", "plain_loop", "sleep"])
@pytest.mark.parametrize("stage", STAGES)
def test_one_sigterm_ends_every_stage(stage: str, how: str, tmp_path: Path):
    with stuck(stage, how, tmp_path) as command:
        command.send(signal.SIGTERM)
        assert command.end() == -signal.SIGTERM or (stage.startswith("ranks") and command.process.returncode)


@pytest.mark.parametrize("how", ["native_loop", "swallow", "fork"])
@pytest.mark.parametrize("stage", STAGES)
def test_two_ctrl_c_end_every_stage(stage: str, how: str, tmp_path: Path):
    with stuck(stage, how, tmp_path) as command:
        for _ in range(2):
            command.send(signal.SIGINT)
            time.sleep(0.5)
        status = command.end()
        assert (
            status != 0 or stage == "watch" or stage.startswith("ranks")
        )  # of ranks it is mpiexec's own, which may be 0


@pytest.mark.parametrize("numbers", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)])
def test_json_into_a_pipe_that_nobody_reads_ends(numbers: tuple[int, ...], tmp_path: Path):
    words = [*TRAIN, "model.activation=relu", "--json", "train.log_every=1", "train.epochs=1000"]
    process = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stdout=subprocess.PIPE)
    metrics, sizes = tmp_path / "run" / "metrics.jsonl", [0, 1]
    while sizes[-1] != sizes[-2] or not sizes[-1]:  # until the pipe is full
        time.sleep(1)
        sizes.append(metrics.stat().st_size if metrics.exists() else 0)
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.5)
    assert process.wait(1.5) in (-signal.SIGTERM, -signal.SIGKILL)
