"""`python -m app run script.py`: a script finds what Python itself would give it, and ends as it would end there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import forked
import pytest

from app.__main__ import main
from app.compat.command import run_script
from app.errors import FileError

pytestmark = pytest.mark.slow

Run = Callable[..., Any]

STAGE = """
    import sys
    import beside
    print(sys.argv[1:], __name__, beside.VALUE, __spec__, __doc__)
    print(sys.path[0])
    print(__file__)
    print(sys.modules["__main__"].__dict__ is globals())
    print(sys.argv[0])
"""


@pytest.mark.parametrize("way", ["python", "app run"])
def test_a_script_finds_what_python_gives_it(way: str, tmp_path: Path):
    (tmp_path / "beside.py").write_text("VALUE = 7")
    (tmp_path / "script.py").write_text(dedent(STAGE))
    words = [str(tmp_path / "script.py"), "--flag", "-h", "--", "word"]
    if way == "python":
        done: Any = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    else:
        done = forked.run(["-m", "app", "run", *words])
    argv, folder, file, same, name = done.stdout.splitlines()
    assert argv == "['--flag', '-h', '--', 'word'] __main__ 7 None None"
    assert (folder, file, same, name) == (str(tmp_path), str(tmp_path / "script.py"), "True", words[-5])


def test_an_exception_shows_the_frames_of_the_script_and_status_1(run: Run):
    done = run(
        """
        def inner():
            raise ValueError("of the script")

        inner()
        """
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: of the script"
    files = [line.split('"')[1] for line in lines if line.lstrip().startswith("File ")]
    assert [Path(file).name for file in files] == ["script.py", "script.py"]


def test_a_mistake_that_the_framework_finds_is_an_exception_of_the_script(run: Run):
    done = run(
        """
        import paddle
        paddle.ones([2, 3]) @ paddle.ones([2, 3])
        """
    )
    assert done.returncode == 1
    assert "script.py" in done.stderr
    assert "app/compat" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("app.errors.ShapeError: operator matmul")


PICKLED = "import pickle\nclass Point:\n    x = 1\nprint(pickle.loads(pickle.dumps(Point())).x)"
HOOK = "import sys\nsys.excepthook = lambda kind, error, traceback: print('mine:', error)\n1 / 0"


@pytest.mark.parametrize(
    ("source", "status", "printed", "message"),
    [
        (PICKLED, 0, "1\n", ""),
        (HOOK, 1, "mine: division by zero\n", ""),
        ("import sys\nsys.exit(3)", 3, "", ""),
        ("import sys\nsys.exit()", 0, "", ""),
        ("import sys\nsys.exit('the reason')", 1, "", "the reason"),
        ("x = = 1", 1, "", "SyntaxError: invalid syntax"),
    ],
)
def test_a_script_ends_as_python_would_end_it(source: str, status: int, printed: str, message: str, run: Run):
    done = run(source)
    assert (done.returncode, done.stdout, done.stderr.rpartition("\n")[0].rpartition("\n")[2]) == (
        status,
        printed,
        message,
    )
    assert "app/compat" not in done.stderr


def test_a_script_in_another_encoding_is_read(tmp_path: Path):
    (tmp_path / "script.py").write_bytes("# coding: latin-1\nprint(len('é'))".encode("latin-1"))
    done = forked.run(["-m", "app", "run", tmp_path / "script.py"])
    assert done.stdout == "1\n"


@pytest.mark.parametrize(("name", "kind"), [(".", "a folder"), ("pipe", "a pipe"), ("/dev/zero", "a device")])
def test_a_script_is_a_file(tmp_path: Path, name: str, kind: str):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match=f"is {kind}, expected a file"):
        run_script(str(tmp_path / name), [])


def test_what_is_no_script_is_one_line(tmp_path: Path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "note.md").write_text("A note, no program.\n")
    for name, reason in {
        "nothing.py": "No such file or directory",
        "picture.png": "it is not a Python file: it has bytes that are not text",
        "note.md": "it is not a Python file; line 1: invalid syntax",
    }.items():
        done = forked.run(["-m", "app", "run", name], cwd=tmp_path)
        assert (done.returncode, done.stderr) == (1, f"error: {name} cannot be run: {reason}\n")


def test_without_a_script_it_says_what_it_needs(capsys: pytest.CaptureFixture[str]):
    assert main(["run"]) == 1
    assert "which script?" in capsys.readouterr().err
