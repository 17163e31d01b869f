"""`opsmith watch`: each save of a file of operators prints a line, and only Ctrl-C ends it."""

import os
import re
import signal
import time
from pathlib import Path

import forked
import pytest

import app
from app.__main__ import main

pytestmark = pytest.mark.slow

OPERATOR = """import app
from slope import SLOPE

@app.custom_op
def leaky(x):
    return x * (1.0 * (x > 0) + SLOPE * (x <= 0))

@leaky.backward
def leaky_grad(x, dy):
    return dy * (1.0 * (x > 0) + SLOPE * (x <= 0))
"""
ROOT = Path(app.__file__).parents[1]


@pytest.fixture
def tmp_path(tmp_path):
    """A folder below one that has the name of this package."""
    return tmp_path / "app"


@pytest.fixture
def watching(tmp_path):
    """The command on `my_ops.py`, as a function that gives its next line."""
    tmp_path.mkdir()
    (tmp_path / "my_ops.py").write_text(OPERATOR)
    (tmp_path / "slope.py").write_text("SLOPE = 0.1\n")
    words = ["my_ops.py", "engine=reference", "data.source=sample", "model.hidden=[4]", "train.epochs=1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = forked.start(["-m", "app", "watch", *words], cwd=tmp_path, env=environment, stderr=forked.STDOUT)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("Watching my_ops.py")
        yield process.stdout.readline
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
        assert (process.returncode, rest) == (0, "\nStopped.\n")
    finally:
        process.kill()


def test_every_save_prints_a_line_and_an_error_does_not_end_it(watching, tmp_path):
    first = watching()
    figures = r"accuracy 0\.\d{4} \(.*[+-]0\.\d{4} from relu\)  epoch \d+\.\d{3} s, \d+\.\d\d times relu's"
    assert re.match(rf"\d\d:\d\d:\d\d  leaky  gradient ok  {figures}  \[\d+\.\d s\]\n", first), first
    (tmp_path / "my_ops.py").write_text("")  # as editors do that write a file in place
    time.sleep(0.3)
    (tmp_path / "my_ops.py").write_text(OPERATOR.replace("return x *", "return x * *"))
    assert re.search(r"my_ops\.py:6: running the file raised SyntaxError: invalid syntax", watching())
    (tmp_path / "my_ops.py").write_text(OPERATOR.replace("return dy *", "return 2 * dy *"))
    assert "leaky  gradient FAILED: that of x is" in watching()
    (tmp_path / "my_ops.py").write_text(OPERATOR)
    assert "+0.0000 from the last version" in watching()
    (tmp_path / "slope.py").write_text("SLOPE = 0.3\n")
    again = watching()
    assert re.search(r"\([+-]0\.\d{4} from the last version, ", again)
    assert "+0.0000 from the last version" not in again
    (tmp_path / "my_ops.py").write_text(
        OPERATOR.replace("return x *", "if len(x) > 5: import os; os._exit(3)\n    return x *")
    )
    assert "my_ops.py  it ends the process, with status 3: raise an error in place of os._exit" in watching()


def test_a_missing_file_is_an_error(tmp_path, capsys):
    assert main(["watch", str(tmp_path / "nothing.py")]) == 2
    assert "there is no file" in capsys.readouterr().err
