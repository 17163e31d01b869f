"""`opsmith run script.py`: a script ends as under Python, and imports façades by the packages' names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import forked
import pytest
from compat.notes import without_notes

import app.compat.importing  # noqa: F401 - which the last test is about
from app.__main__ import main
from app.compat.command import run_script
from app.errors import FileError

pytestmark = pytest.mark.slow

Run = Callable[..., forked.Done]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a text as a script in a process of its own; gives how it ended and what it printed."""

    def run_text(text: str) -> forked.Done:
        script = tmp_path / "script.py"
        script.write_text(dedent(text))
        return forked.run(["-m", "app", "run", script])

    return run_text


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


def test_a_traceback_has_the_frames_of_the_script(run: Run):
    done = run("def inner():\n    raise ValueError('of the script')\n\ninner()")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert (lines[0], lines[-1]) == ("Traceback (most recent call last):", "ValueError: of the script")
    files = [line.split('"')[1] for line in lines if line.lstrip().startswith("File ")]
    assert [Path(file).name for file in files] == ["script.py", "script.py"]
    done = run("import paddle\npaddle.ones([2, 3]) @ paddle.ones([2, 3])")
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


def test_a_file_that_is_no_script_is_an_error_of_one_line(tmp_path: Path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "note.md").write_text("A note, no program.\n")
    for name, reason in {
        "nothing.py": "No such file or directory",
        "picture.png": "it is not a Python file: it has bytes that are not text",
        "note.md": "it is not a Python file; line 1: invalid syntax",
    }.items():
        done = forked.run(["-m", "app", "run", name], cwd=tmp_path)
        assert (done.returncode, done.stderr) == (1, f"error: {name} cannot be run: {reason}\n")


def test_a_missing_argument_is_an_error(capsys: pytest.CaptureFixture[str]):
    assert main(["run"]) == 1
    assert "which script?" in capsys.readouterr().err


# Imports


def test_every_way_to_import_gives_the_same_modules(run: Run):
    done = run(
        """
        import paddle
        import paddle.nn as nn
        import paddle.nn.functional as F
        import paddle.fluid as fluid
        import paddle.fluid.layers as layers
        from paddle.autograd import PyLayer
        from paddle.autograd.py_layer import PyLayer as same
        from paddle import fluid as fluid_too
        from app.compat import fluid as ours, paddle as facade
        import app

        assert facade is paddle and ours is fluid is fluid_too is paddle.fluid
        assert app.nn.functional is F is nn.functional is paddle.nn.functional
        assert PyLayer is same is app.autograd.PyLayer
        assert layers is fluid.layers
        import torch.nn.functional
        from torch.autograd.gradcheck import gradcheck, GradcheckError
        from torch.nn.modules.module import Module
        assert torch.autograd.gradcheck is gradcheck and torch.nn.Module is Module
        print(paddle.__name__, paddle.__spec__.name, F.__spec__.name)
        """
    )
    assert without_notes(done.stderr) == ""
    assert done.stdout == "app.compat.paddle app.compat.paddle app.nn.functional\n"


MISSING = {
    "import paddle.autogard": "paddle has no 'autogard' here",
    "import paddle.nn.xyz": "paddle.nn has no 'xyz' here",
    "from paddle import PyLayer": "cannot import name 'PyLayer'",
    "import torch.optim": "torch has no 'optim' here",
    "from torch.nn import Linear": "cannot import name 'Linear'",
    "import torch.utils.data": "torch has no 'utils' here",
}


def test_a_missing_name_is_an_error_that_a_script_can_handle(run: Run):
    attempts = [
        f"try:\n    {statement}\nexcept ImportError as e:\n    print(isinstance(e, ModuleNotFoundError), e)\n"
        for statement in MISSING
    ]
    done = run("".join(attempts))
    assert without_notes(done.stderr) == ""
    for line, (statement, message) in zip(done.stdout.splitlines(), MISSING.items(), strict=True):
        assert line.startswith(f"{statement.startswith('import')} {message}")


@pytest.mark.parametrize("installed", [True, False])
def test_an_installed_package_is_passed_over_with_a_note(run: Run, installed: bool, tmp_path: Path):
    if not installed and find_spec("paddle") is not None:
        pytest.skip("Paddle is installed")
    (tmp_path / "paddle").mkdir()
    if installed:
        (tmp_path / "paddle" / "__init__.py").write_text("print('the real one')")
    done = run("import paddle\nimport paddle.nn\nprint(paddle.__name__)")
    assert done.stdout == "app.compat.paddle\n"
    note = "note: the installed paddle is passed over; paddle is opsmith.compat.paddle here\n"
    assert done.stderr == (note if installed else "")


def test_a_facade_is_imported_only_by_a_script_that_asks_for_it(run: Run):
    facades = ("app.compat.paddle", "app.compat.torch")
    done = run(f"import app, sys; app.nn, app.to_tensor; print([m for m in sys.modules if m.startswith({facades})])")
    assert done.stdout == "[]\n"
    assert not [finder for finder in sys.meta_path if "Facade" in type(finder).__name__]
