"""Typical mistakes, in opsmith's words: what `opsmith check` says names the mistake, its place, and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest
from as_python import uncompiled

from app.__main__ import main
from app.checking.checks import CHECKS

__all__ = ["uncompiled"]

pytestmark = pytest.mark.slow

HEAD = "import numpy as np\nimport opsmith\nfrom numba import njit\n\n\n"


def operator(*forward: str, arguments: str = "", parameters: str = "x, dy", backward: str = "return dy") -> str:
    """A file with an operator: its function begins in line 6, and its backward after that."""
    body = "".join(f"    {line}\n" for line in forward)
    rule = f"@mine.backward\ndef mine_grad({parameters}):\n    {backward}\n" if backward else ""
    return f"{HEAD}@opsmith.custom_op{arguments}\ndef mine(x):\n{body}\n\n{rule}"


MISTAKES = {
    "a forgotten factor": (
        operator("return x * x", backward="return dy * x"),
        ["backward (mine_grad, mine.py:11)", "half of what it should"],
    ),
    "the arriving gradient is ignored": (
        operator("return np.sin(x)", backward="return np.cos(x)"),
        ["mine.py:11", "it is not multiplied by dy"],
    ),
    "another name for the arriving gradient": (
        operator("return x * 2", parameters="x, grad"),
        ["mine.py:11", "parameter 'grad'; expected one of x, out, dout"],
    ),
    "the context of PyTorch": (
        operator("return x * 2", parameters="ctx, dy"),
        ["mine.py:11", "parameter 'ctx'; expected one of x, y, dy"],
    ),
    "no return in forward": (operator("y = x * 2"), ["mine.py:6", "returned None", "a return may be missing"]),
    "no return in backward": (
        operator("return x * 2", backward="dx = dy * 2"),
        ["mine.py:11", "it is zero; does backward return it?"],
    ),
    "forward writes into its input": (
        operator("x[x < 0] = 0", "return x"),
        ["mine.py:8", "write into a copy (y = x.copy())"],
    ),
    "a gradient of a mean that is not repeated": (
        operator("return x.mean(axis=1)"),
        ["mine.py:11", "shape [4], expected that of x, [4, 6]", "or repeat it with np.broadcast_to"],
    ),
    "a transposed gradient": (
        operator("return x.T"),
        ["mine.py:11", "[6, 4], expected that of x, [4, 6]", "; transpose it"],
    ),
    "whole numbers": (
        operator("return (x > 0).astype(int)"),
        ["mine.py:6", "its results are int64", "return floats, as in y.astype(x.dtype)"],
    ),
    "a count of calls": (
        operator("CALLS.append(1)", "return x * len(CALLS)").replace(HEAD, f"{HEAD}CALLS = []\n"),
        ["mine.py:7", "the same inputs give another result", "keep nothing between calls"],
    ),
    "a function of arrays, declared elementwise": (
        operator("return x - x.mean()", arguments="(elementwise=True)"),
        ["mine.py:6", "elementwise=True gives it single numbers: leave it out for arrays"],
    ),
    "a function of arrays without a backward, declared elementwise": (
        operator("return x / x.sum()", arguments="(elementwise=True)", backward=""),
        ["mine.py:8", "elementwise=True gives it single numbers: leave it out for arrays"],
    ),
    "np.where of a number, where Python needs a number": (
        operator("return round(np.where(x > 0, x, 0.5)) * x", arguments="(elementwise=True)", backward=""),
        ["mine.py:8", "np.where of numbers gives an array: write `a if condition else b`"],
    ),
    "a function of one number, not declared elementwise": (
        operator("return x if x > 0 else 0 * x"),
        ["mine.py:8", "a function of one number needs custom_op(elementwise=True)"],
    ),
    "too many gradients": (
        operator("return x * 2", backward="return dy * 2, dy"),
        ["mine_grad", "returned 2 values, expected 1, one for each input"],
    ),
    "a list": (operator("return (x * 2).tolist()"), ["mine.py:6", "make one array of a list, np.array(values)"]),
    "a list from backward": (
        operator("return x * 2", backward="return (dy * 2).tolist()"),
        ["mine_grad", "returned 4 values, expected 1, one for each input; make one array of a list, np.array(values)"],
    ),
    "a misspelt name": (operator("return np.sine(x)"), ["mine.py:8", "no attribute 'sine'; did you mean 'sin'?"]),
    "nothing is saved in a PyLayer": (
        f"{HEAD}class Mine(opsmith.autograd.PyLayer):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * x\n\n"
        "    @staticmethod\n    def backward(ctx, dy):\n        (x,) = ctx.saved_tensor()\n        return 2 * x * dy\n",
        ["mine.py:13", "ctx.saved_tensor() has what forward gives to ctx.save_for_backward, here nothing"],
    ),
    "no decorator": (
        f"{HEAD}def mine(x):\n    return x\n",
        ["mine.py defines no custom operator: what @custom_op makes"],
    ),
    "@njit above the operator": (
        f"{HEAD}@njit\n@opsmith.custom_op\ndef mine(x):\n    return x\n",
        ["mine.py:6", "write @njit below the decorator that makes an operator"],
    ),
    "a gradient that cannot be derived": (
        operator("return np.gradient(x, axis=1)", backward=""),
        ["mine.py:8", "calls gradient, whose derivative is unknown", "@mine.backward"],
    ),
    "an index outside": (
        operator("y = x.copy()", "for i in range(len(x)):", "    y[i] = x[i + 1]", "return y").replace(
            "def mine(", "@njit\ndef mine("
        ),
        ["mine.py:11", "index 4 is out of bounds for axis 0 with size 4"],
    ),
}
"""What the file says, and the facts of the message."""


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("every_check", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_place_and_how_to_mend_it(
    mistake: str,
    every_check: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    for check in () if every_check else ("engines", "inlined"):  # which compile
        monkeypatch.delitem(CHECKS, check)
    source, facts = MISTAKES[mistake]
    (tmp_path / "mine.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "mine.py"])
    shown = "".join(capsys.readouterr())
    missing = [fact for fact in facts if fact not in shown]
    assert not missing, shown
    assert len([line for line in shown.splitlines() if line.startswith("  FAILED")]) < 4
    assert "Traceback" not in shown
