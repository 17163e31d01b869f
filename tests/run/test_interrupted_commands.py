"""`train.py` when Ctrl-C ends it before it trains, and when nobody reads what it prints.

Ctrl-C in training and full disks are in test_resume.py, other signals in tests/test_signals.py, a full disk behind
standard output in tests/test_commands.py.
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


# --- Readers that go away ---


def test_a_closed_pipe_ends_a_run_silently(start, tmp_path):
    process = start(*ENDLESS)
    wait_for(process.stdout, "test accuracy")
    process.stdout.close()
    process.wait(timeout=60)
    assert (process.stderr.read(), process.returncode) == ("", 1)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_a_run_without_standard_streams_ends_well(tmp_path):
    short = ["--no-baseline", "model.activation=relu", "train.epochs=1", "train.batch_size=5000", "report=false"]
    words = ["--config", QUICK, *short, "engine=reference", "costs=false", f"output={tmp_path}/run"]
    command = ["sh", "-c", '"$@" >&- 2>&-', "sh", sys.executable, str(ROOT / "train.py"), *words]
    assert subprocess.run(command, check=False).returncode == 0
    assert (tmp_path / "run" / "summary.txt").read_text().startswith("operator")
