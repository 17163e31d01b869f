"""`python -m app demo`: which run it shows, where it listens, and how it ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forked
import pytest

from app.__main__ import main
from app.use.demo import command

pytestmark = pytest.mark.slow


@pytest.fixture
def started(run_folder: Path) -> Iterator[forked.Command]:
    """The command, as a user types it."""
    process = forked.start(["-m", "app", "demo", str(run_folder), "--port", "0"])
    yield process
    process.kill()


def test_it_says_where_it_is_serves_there_and_ctrl_c_ends_it(started: forked.Command, run_folder: Path):
    assert started.stdout is not None
    told = started.stdout.readline()
    assert re.match(rf"{re.escape(str(run_folder))}: custom.relu \(9\d\.\d\d % of the test digits\) and relu \(", told)
    assert told.endswith("engine reference\n")
    found = re.match(r"Draw a digit at (http://127.0.0.1:\d+/)  \(for this machine alone;", started.stdout.readline())
    assert found is not None
    with urllib.request.urlopen(found[1], timeout=20) as page:
        assert b"<h1>Draw a digit</h1>" in page.read()
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=20)
    assert (started.returncode, out, err) == (0, "\nEnded.\n", "")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """The runs that were opened, in a folder of its own; the server ends at once."""
    opened: list[Path] = []
    real = command.open_run

    def open_run(folder: Path, *others: Any) -> Any:
        opened.append(folder)
        return real(folder, *others)

    def serve_forever(server: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "open_run", open_run)
    monkeypatch.setattr(command.Server, "serve_forever", serve_forever)
    return opened


def test_the_run_that_ended_last_is_shown(shown: list[Path], run_folder: Path):
    for name, time in (("a", 100), ("b", 300), ("c", 200)):
        shutil.copytree(run_folder, Path("runs") / name)
        for file in Path("runs", name).glob("weights-*"):
            os.utime(file, (time, time))
    Path("runs", "unfinished").mkdir()
    shutil.copy(run_folder / "config.yaml", Path("runs", "unfinished"))
    assert main(["demo", "--port", "0"]) == 0
    assert main(["demo", "runs/c", "--port", "0"]) == 0
    assert shown == [Path("runs/b"), Path("runs/c")]


def test_where_there_is_no_run_one_is_trained(
    shown: list[Path], run_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    trained = []

    def train(config: Any, name: str) -> None:
        trained.append((config.model.hidden, name))
        shutil.copytree(run_folder, "runs/best-1")

    monkeypatch.setattr(command, "train", train)
    assert main(["demo", "--port", "0"]) == 0
    assert (trained, shown) == ([((512,), "best")], [Path("runs/best-1")])
    assert capsys.readouterr().out.startswith("There is no run in runs/ yet: training by configs/best.yaml first")


def test_a_port_that_is_taken_is_told_with_what_to_do(
    shown: list[Path], run_folder: Path, capsys: pytest.CaptureFixture[str]
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["demo", str(run_folder), "--port", str(port)]) == 1
    advice = "choose another with --port N, or any free one with --port 0"
    assert capsys.readouterr().err == f"error: port {port} is taken, perhaps by another demo; {advice}\n"


@pytest.mark.parametrize("port", ["65536", "-1", "x", "1.5", "٣", "99999999999"])
def test_what_is_no_port_is_told(port: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--port", port])
    assert ended.value.code == 2
    assert f"expected a whole number from 0 to 65535, found {port!r}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("folder", "told"),
    [("nothing", "there is no folder nothing; name the folder of a run"), (".", ". is no folder of a run")],
)
def test_what_is_no_run_is_told_in_a_line(
    shown: list[Path], folder: str, told: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["demo", folder]) == 1
    assert capsys.readouterr().err.startswith(f"error: {told}")
