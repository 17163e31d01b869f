"""`train.py` when Ctrl-C ends it, and when its output goes away: pipes, terminals, full disks.

Ctrl-C in training is in test_resume.py, other signals are in tests/test_signals.py, full disks behind standard output
in tests/test_commands.py.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app.run import config as config_module

pytestmark = pytest.mark.slow

ROOT = Path(config_module.__file__).parents[2]
QUICK = str(ROOT / "configs" / "quick.yaml")
ENDLESS = ("--config", QUICK, "train.epochs=1000000", "engine=reference", "output=run", "report=false")


def wait_for(stream, text):
    """Read lines until one holds `text`."""
    read = text[:0]
    while text not in read:
        line = stream.readline()
        assert line, f"it ended without {text!r}, after:\n{read}"
        read += line
    return read


# --- Ctrl-C ---


def test_ctrl_c_while_data_is_being_fetched(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        words = (f"data.sources=[{source}, sample]", f"data.folder={tmp_path}/cache", "data.source=auto")
        process = start(*ENDLESS, *words, env={**os.environ, "NO_PROXY": "127.0.0.1"})
        connection, _ = silent.accept()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        connection.close()
    assert (process.returncode, out, err) == (130, "", f"Asking {source} for 4 files\ninterrupted\n")
    assert not (tmp_path / "run").exists()


# --- Readers that go away, and full disks ---


def test_a_closed_pipe_ends_a_run_silently(start, tmp_path):
    process = start(*ENDLESS)
    wait_for(process.stdout, "test accuracy")
    process.stdout.close()
    process.wait(timeout=60)
    assert (process.stderr.read(), process.returncode) == ("", 1)


def test_a_run_whose_files_may_not_grow_ends_with_an_error_and_resumes_when_they_may(start, tmp_path):
    full = start(*ENDLESS, "train.epochs=2", "train.batch_size=2000", largest_file=500_000)
    out, err = full.communicate(timeout=60)
    assert (full.returncode, err) == (1, "error: run/checkpoint.safetensors cannot be written: File too large\n")
    assert out.endswith("Resume with:\nopsmith train --resume run\n")
    assert {file.name for file in (tmp_path / "run").iterdir()} == {"config.yaml", "metrics.jsonl"}
    again = start("--resume", "run")
    out, err = again.communicate(timeout=60)
    assert (again.returncode, err) == (0, "")
    assert "There is no checkpoint yet" in out


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_a_run_without_standard_streams_ends_well(tmp_path):
    short = ["--no-baseline", "model.activation=relu", "train.epochs=1", "train.batch_size=5000", "report=false"]
    words = ["--config", QUICK, *short, "engine=reference", "costs=false", f"output={tmp_path}/run"]
    command = ["sh", "-c", '"$@" >&- 2>&-', "sh", sys.executable, str(ROOT / "train.py"), *words]
    assert subprocess.run(command, check=False).returncode == 0
    assert (tmp_path / "run" / "summary.txt").read_text().startswith("operator")
