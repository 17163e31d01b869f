"""`opsmith export my_ops.py:name --to torch`: an operator as source, after it has passed its check."""

from __future__ import annotations

from pathlib import Path

import pytest
from as_python import uncompiled

from app.__main__ import main
from app.checking.checks import CHECKS

__all__ = ["uncompiled"]

pytestmark = pytest.mark.usefixtures("uncompiled")

_OPERATORS = """
import numpy as np
from numba import njit
import opsmith

@opsmith.custom_op(elementwise=True)
def cube(x, scale=1.0):
    return scale * x ** 3

@opsmith.custom_op(elementwise=True)
def wrong(x):
    return x * x

@wrong.backward
def wrong_grad(x, dout):
    return dout * x

class Layer(opsmith.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2
"""


@pytest.fixture
def ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with operators, whose checks compile no networks."""
    monkeypatch.chdir(tmp_path)
    for name in ("engines", "inlined"):
        monkeypatch.delitem(CHECKS, name)
    Path("my_ops.py").write_text(_OPERATORS)
    return tmp_path


@pytest.mark.slow
def test_an_operator_is_written_with_its_test_and_how_it_was_proven_and_files_of_others_stay(
    ops: Path, capsys: pytest.CaptureFixture[str]
):
    export = ["export", "my_ops.py:cube", "--to", "torch", "--output", "new/folder"]
    operator, test = Path("new/folder/cube_torch.py"), Path("new/folder/test_cube_torch.py")
    assert main(export) == 0
    assert f"{operator}, {test}: Made of tensor expressions." in capsys.readouterr().out
    text = operator.read_text()
    assert "from my_ops.py:6" in text
    assert "opsmith check: " in text
    assert " passed" in text
    assert "import opsmith" not in text + test.read_text()
    assert main(export) == 0  # replaces its own files
    operator.unlink()
    test.write_text("mine")
    assert main(export) == 1
    assert "was not written by this program" in capsys.readouterr().err
    assert not operator.exists()


@pytest.mark.slow
def test_an_operator_of_py_func_leaves_for_each_target(ops: Path):
    assert main(["export", "custom.relu", "--to", "torch", "--to", "jax", "--to", "c"]) == 0


@pytest.mark.slow
def test_an_operator_that_left_comes_back(ops: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("torch")
    assert main(["export", "my_ops.py:cube", "--to", "torch"]) == 0
    assert main(["check", "cube_torch.py:cube", "--like", "my_ops.py:cube", "--also", "vmap,forward"]) == 0
    assert "the results equal those of my_ops.py:cube" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["my_ops.py:wrong", "--to", "torch"], "wrong fails its check, gradient: "),
        (["my_ops.py:Layer", "--to", "torch"], "composed of operators of opsmith"),
        (["my_ops.py:cube", "--to", "onnx"], "opsmith.onnx.export(operator, ...) writes onnx"),
        (["my_ops.py:cube", "--to", "torch", "--output", "my_ops.py"], "my_ops.py is a file"),
        (
            ["runs/quick", "--to", "torch"],
            "a network is exported --to onnx; --to torch is for a custom operator, my_ops.py:name",
        ),
        (["runs/quick", "--to", "onnx", "--shape", "4"], "--shape is for operators; runs/quick is a network"),
        (["my_ops.py:cube", "--to", "torch", "--allow-opaque"], "--allow-opaque is for networks; my_ops.py:cube is an"),
        *[
            (["my_ops.py:cube", "--to", "torch", option, "my_ops.py:cube"], f"{option} my_ops.py:cube: this is for the")
            for option in ("--custom-op", "--accept-changed")
        ],
    ],
)
def test_what_cannot_leave_is_one_line(words: list[str], message: str, ops: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["export", *words]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not list(Path().glob("*_torch.py"))
