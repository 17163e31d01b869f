"""`opsmith COMMAND`, and how a command may end: with a message and a status, never with a traceback."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import forked
import pytest

from app import __version__
from app.__main__ import COMMANDS, _options, main
from app.command_line import run
from app.errors import AppError, ConfigError, DataError, FileError

ROOT = Path(__file__).parents[1]


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The status of a command that argparse ends, and what it prints, with single spaces."""
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    printed = capsys.readouterr()
    return caught.value.code, " ".join((printed.out + printed.err).split())


def test_help_lists_every_command_with_a_line(capsys: pytest.CaptureFixture[str]):
    status, printed = ended(capsys, "--help")
    assert status == 0
    for name, command in COMMANDS.items():
        assert name in printed
        assert command.help in printed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example_that_can_be_parsed(name: str, capsys: pytest.CaptureFixture[str]):
    status, printed = ended(capsys, name, "--help")
    assert status == 0
    assert printed.startswith(f"usage: opsmith {name}")
    assert f"example: opsmith {name} " in printed
    parser = argparse.ArgumentParser()
    importlib.import_module(COMMANDS[name].module, "app").add_arguments(parser)
    _options(parser, shlex.split(COMMANDS[name].example))


@pytest.mark.parametrize(
    ("words", "status", "beginning"),
    [
        ([], 2, "usage: opsmith"),
        (["bogus"], 2, "usage: opsmith"),
        (["data", "bogus"], 2, "usage: opsmith"),
        (["--version"], 0, f"opsmith {__version__}"),
        (["train", "--help"], 0, "usage: opsmith train"),
    ],
)
def test_usage_errors_the_version_and_train(
    words: list[str], status: int, beginning: str, capsys: pytest.CaptureFixture[str]
):
    actual, printed = ended(capsys, *words)
    assert actual == status
    assert printed.startswith(beginning)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([], "opsmith check my_ops.py:swish --like silu"),
        (["chek"], "invalid choice: 'chek'; did you mean 'check'? (choose from check, "),
        (["export", "my_ops.py:swish", "--to", "pytorch"], "'pytorch'; did you mean 'torch'? (choose from onnx, "),
        (
            ["train", "--train.epochs=3"],
            "unrecognized arguments: --train.epochs=3; a setting has no dashes: train.epochs=3",
        ),
    ],
)
def test_a_mistake_on_the_command_line_is_answered_with_what_may_be_meant(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
):
    status, printed = ended(capsys, *words)
    assert status == 2
    assert hint in printed


@pytest.mark.parametrize(
    "words",
    [
        ["check", "~no-such-user/ops.py"],
        ["check", "~no-such-user/ops.py:swish"],
        ["train", "model.activation=~no-such-user/ops.py:swish", "data.source=sample"],
        ["demo", "~no-such-user/run"],
    ],
)
def test_the_home_folder_of_nobody_is_a_folder_that_does_not_exist(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(words) in (1, 2)
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert "~no-such-user" in err


def test_a_closed_pipe_is_silent():
    with subprocess.Popen(
        [sys.executable, "-m", "app", "data"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 1)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (AppError("the reason"), 1, "error: the reason\n"),
        (ConfigError("the reason"), 2, "error: the reason\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (KeyboardInterrupt("Resume with:\nit"), 130, "interrupted. Resume with:\nit\n"),
        (BrokenPipeError(), 1, ""),
        (MemoryError("Unable to allocate 5 TiB"), 1, "error: not enough memory. Unable to allocate 5 TiB\n"),
        (MemoryError(), 1, "error: not enough memory.\n"),
        (OSError(errno.ENOSPC, "Disk full", "a.txt"), 1, "error: [Errno 28] Disk full: 'a.txt'\n"),
    ],
)
def test_each_exception_has_a_status_and_a_message(
    error: BaseException, status: int, message: str, capsys: pytest.CaptureFixture[str]
):
    assert run(Mock(side_effect=error)) == status
    assert capsys.readouterr().err == message


def test_other_statuses_and_unexpected_exceptions_are_passed_on():
    assert (run(lambda: 0), run(lambda: 3)) == (0, 3)
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 // 0)


@pytest.mark.parametrize("kind", [FileError, DataError, ConfigError])
def test_an_error_of_a_file_is_one_line_of_at_most_500_letters(
    kind: type[AppError], capsys: pytest.CaptureFixture[str]
):
    def fail() -> int:
        raise kind("x.json: found \x1b[2J\nerror: all is well\u202e" + "\x1b" * 15_000 + "; save it again")

    assert run(fail) == kind.exit_status
    err = capsys.readouterr().err
    assert err.startswith("error: x.json: found \\x1b[2J\\nerror: all is well\\u202e\\x1b")
    assert err.endswith("\\x1b; save it again\n")
    assert err[:-1].isprintable()
    assert len(err) <= 501


def test_a_message_has_an_end(capsys: pytest.CaptureFixture[str]):
    def fail() -> int:
        raise AppError("\n".join(["x" * 15_000] * 100))

    assert run(fail) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "(40 more lines)"
    assert max(map(len, lines)) <= 500


def test_messages_have_no_passwords(capsys: pytest.CaptureFixture[str]):
    def fail() -> int:
        raise AppError("https://me:secret@host/x and ftp://me:s@cret@host, but https://host/a@b, HTTP://me@host:80/")

    assert run(fail) == 1
    assert capsys.readouterr().err == "error: https://host/x and ftp://host, but https://host/a@b, HTTP://host:80/\n"


def test_characters_outside_the_terminals_encoding_are_escaped():
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
def test_ctrl_c_during_imports_has_the_usual_status_and_message(words: list[str], tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    settings = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["train.py", "--help"], ["-m", "app", "--help"], ["-m", "app", "data"]])
@pytest.mark.slow
def test_a_full_standard_output_is_an_error(words: list[str]):
    with open("/dev/full", "w") as full:
        done = forked.run(words, stdout=full)
        both = subprocess.run([sys.executable, *words], cwd=ROOT, stdout=full, stderr=full, check=False)
    message = "error: standard output cannot be written: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr, both.returncode) == (1, message, 1)


@pytest.mark.parametrize("words", [["train.py"], ["-m", "app", "report", "runs/a"]])
@pytest.mark.slow
def test_a_deleted_working_folder_is_an_error(words: list[str], tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    words = [str(ROOT / "train.py")] if words == ["train.py"] else words
    lost = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", lost, *words]
    done = subprocess.run(command, cwd=gone, env=settings, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode
    assert done.stderr.endswith("The working folder no longer exists: change to another one\n")
