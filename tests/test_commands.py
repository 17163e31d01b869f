"""`python -m app COMMAND`, and how a command may end: with a message and a status, never with a traceback."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import forked
import pytest

from app import __version__
from app.__main__ import COMMANDS, _options, main
from app.command_line import run
from app.errors import AppError, ConfigError

ROOT = Path(__file__).parents[1]


def test_help_lists_every_command_with_a_line(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    for name, command in COMMANDS.items():
        assert name in told
        assert command.help in told


@pytest.mark.parametrize("words", [[], ["bogus"], ["data", "bogus"]])
def test_a_command_that_does_not_exist_is_status_2(words: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: python -m app" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example_that_can_be_parsed(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith(f"usage: python -m app {name}")
    assert f"example: python -m app {name} " in told
    parser = argparse.ArgumentParser()
    importlib.import_module(COMMANDS[name].module).add_arguments(parser)
    _options(parser, shlex.split(COMMANDS[name].example))


@pytest.mark.parametrize(
    ("words", "told"), [(["--version"], f"opsmith {__version__}\n"), (["train", "--help"], "usage: opsmith train")]
)
def test_the_version_and_training_are_at_hand_too(words: list[str], told: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(words)
    assert capsys.readouterr().out.startswith(told)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import opsmith.nn, app, sys; print({opsmith is app, opsmith.nn is sys.modules['app.nn']})", "{True}"),
        ("import app, opsmith", "was imported as `app` before opsmith"),
    ],
)
@pytest.mark.slow
def test_opsmith_is_found_beside_a_users_own_app(program: str, told: str, tmp_path: Path):
    (tmp_path / "app.py").write_text("")
    (tmp_path / "main.py").write_text(f"import sys; sys.path.append({str(ROOT)!r})\n{program}")
    done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told in done.stdout + done.stderr


def test_a_closed_pipe_is_silent():
    with subprocess.Popen(
        [sys.executable, "-m", "app", "data"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 141)


def raising(error: BaseException) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (AppError("the reason"), 1, "error: the reason\n"),
        (ConfigError("the reason"), 2, "error: the reason\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (BrokenPipeError(), 141, ""),
        (MemoryError("Unable to allocate 5 TiB"), 1, "error: not enough memory. Unable to allocate 5 TiB\n"),
        (MemoryError(), 1, "error: not enough memory.\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "a.txt"),
            1,
            "error: [Errno 28] No space left on device: 'a.txt'\n",
        ),
    ],
)
def test_each_way_to_end_has_its_status_and_message(
    error: BaseException, status: int, message: str, capsys: pytest.CaptureFixture[str]
):
    assert run(raising(error)) == status
    assert capsys.readouterr().err == message


def test_a_command_that_ends_well_gives_its_own_status_and_mistakes_of_ours_are_not_hidden():
    assert (run(lambda: 0), run(lambda: 3)) == (0, 3)
    with pytest.raises(ZeroDivisionError):
        run(raising(ZeroDivisionError()))


def test_text_that_the_terminal_cannot_show_is_escaped():
    program = "from app.command_line import run; run(lambda: print('größe \\udcff'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("gr\\xf6\\xdfe \\udcff\n", "")


INTERRUPTING = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "app.tensor.tensor":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.parametrize("words", [["train.py"], ["-m", "app", "check", "relu"]])
@pytest.mark.slow
def test_ctrl_c_while_modules_are_being_imported_ends_as_later(words: list[str], tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    settings = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["train.py", "--help"], ["-m", "app", "--help"], ["-m", "app", "data"]])
@pytest.mark.slow
def test_standard_output_that_is_full_is_named(words: list[str]):
    with open("/dev/full", "w") as full:
        done = forked.run(words, stdout=full)
    told = "error: standard output cannot be written: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_where_both_streams_are_full_the_status_tells():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "app", "data"]
        assert subprocess.run(command, cwd=ROOT, stdout=full, stderr=full, check=False).returncode == 1


@pytest.mark.parametrize(
    "words", [["train.py"], ["-m", "app", "data"], ["-m", "app", "compare"], ["-m", "app", "report", "runs/a"]]
)
@pytest.mark.slow
def test_a_working_folder_that_is_gone_is_named(words: list[str], tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    words = [str(ROOT / "train.py")] if words == ["train.py"] else words
    lost = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", lost, *words]
    done = subprocess.run(command, cwd=gone, env=settings, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.stderr.endswith("The working folder no longer exists: change to another one\n")
