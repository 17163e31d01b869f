"""`opsmith demo`: which run it shows, where it listens, and how it ends."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest

from app.__main__ import main
from app.run.weights import write_weights
from app.use.demo import command
from app.use.demo.classifier import SHIPPED

pytestmark = pytest.mark.slow


def test_the_demo_prints_its_address_serves_there_and_ends_at_ctrl_c(run_folder: Path):
    started = forked.start(["-m", "app", "demo", str(run_folder), "--port", "0", "--no-browser"])
    assert started.stdout is not None
    line = started.stdout.readline()
    assert re.match(rf"{re.escape(str(run_folder))}: custom.relu \(9\d\.\d\d % test accuracy\) and relu \(", line)
    assert line.endswith("% test accuracy)\n")
    address = r"Draw a digit at (http://127.0.0.1:\d+/)  \(only reachable from this machine;"
    match = re.match(address, started.stdout.readline())
    assert match is not None
    with urllib.request.urlopen(match[1], timeout=20) as page:
        assert b"<h1>Draw a digit</h1>" in page.read()
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=20)
    assert (started.returncode, out, err) == (0, "\nStopped.\n", "")


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


def finished(name: str, run: Path, accuracy: float) -> None:
    """A run in runs/, which read so many of the test digits."""
    folder = Path(shutil.copytree(run, Path("runs") / name))
    metrics = (folder / "metrics.jsonl").read_text()
    text = re.sub(r'"test_accuracy": [\d.]+', f'"test_accuracy": {accuracy}', metrics)
    (folder / "metrics.jsonl").write_text(text)


def test_the_best_run_is_shown(shown: list[Path], run_folder: Path, capsys: pytest.CaptureFixture[str]):
    for name, accuracy in (("a", 0.961), ("b", 0.973), ("c", 0.952)):
        finished(name, run_folder, accuracy)
    Path("runs", "unfinished").mkdir()
    shutil.copy(run_folder / "config.yaml", Path("runs", "unfinished"))
    assert main(["demo", "--port", "0"]) == 0
    assert main(["demo", "runs/c", "--port", "0"]) == 0
    assert shown == [Path("runs/b"), Path("runs/c")]
    assert "runs/b: custom.relu (97.30 % test accuracy)" in capsys.readouterr().out


def test_the_shipped_network_is_shown_if_no_run_is_better(
    shown: list[Path], run_folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["demo", "--port", "0"]) == 0
    finished("default", run_folder, 0.906)
    assert main(["demo", "--port", "0"]) == 0
    assert shown == [SHIPPED, SHIPPED]
    out = capsys.readouterr().out
    assert "The network that comes with opsmith: custom.relu (97.96 % test accuracy)" in out
    assert (
        "note: runs/default classifies only 90.6 % of the test digits correctly; to use it: opsmith demo runs/" in out
    )


def test_a_dangling_link_to_weights_does_not_stop_the_demo(shown: list[Path], run_folder: Path):
    finished("a", run_folder, 0.97)
    Path("runs", "b").mkdir()
    Path("runs", "b", "weights-relu.safetensors").symlink_to("nowhere")
    assert main(["demo", "--port", "0", "--no-browser"]) == 0
    assert shown == [Path("runs/a")]


def test_a_run_with_an_unknown_operator_is_skipped(shown: list[Path], run_folder: Path):
    finished("of-a-cell", run_folder, 0.99)
    folder = Path("runs/of-a-cell")
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("custom.relu", "swish_of_a_cell"))
    (folder / "weights-custom.relu.safetensors").unlink()
    write_weights(folder / "weights-own.safetensors", "swish_of_a_cell", {"a": np.zeros(2, np.float32)})
    assert main(["demo", "--port", "0"]) == 0
    assert shown == [folder, SHIPPED]


def test_a_browser_is_opened_if_there_is_a_display(shown: list[Path], monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr(command.webbrowser, "open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(command.sys, "platform", "linux")
    assert main(["demo", "--port", "0"]) == 0
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    assert main(["demo", "--port", "0", "--no-browser"]) == 0
    assert opened == []
    assert main(["demo", "--port", "0"]) == 0
    assert re.match(r"http://127\.0\.0\.1:\d+/", opened[0])


@pytest.mark.parametrize("port", ["65536", "000000065536", "-1", "1.5", "٣"])
def test_an_invalid_port_is_a_usage_error(port: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--port", port])
    assert ended.value.code == 2
    assert f"expected a whole number from 0 to 65535, found {port!r}" in capsys.readouterr().err


def test_a_missing_run_and_a_port_in_use_are_errors(shown: list[Path], capsys: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        for words, message in (
            (["nothing"], "no such folder: nothing; name the folder of a run"),
            (["."], ". is not the folder of a run"),
            (
                ["--port", port],
                f"port {port} is taken, perhaps by another demo; choose another with --port N, or any free one with "
                "--port 0\n",
            ),
        ):
            assert main(["demo", *words]) == 1
            assert capsys.readouterr().err.startswith(f"error: {message}")
