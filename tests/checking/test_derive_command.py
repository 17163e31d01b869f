"""`opsmith derive`: the gradient of an operator as source, or the line that prevents it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.__main__ import main

OPERATORS = """
import numpy as np
import app

@app.custom_op
def cumulated(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
            y[i, j] = total
    return y

@app.custom_op
def totals(x):
    return x * x.sum()

@app.custom_op(elementwise=True)
def swish(x):
    return x / (1 + np.exp(-x))

def forward(x):
    return x * 3.0

def by_py_func(x):
    return app.static.py_func(forward, x, app.static.InputSpec(x.shape, x.dtype), "derive")

def without(x):
    return app.static.py_func(forward, x, app.static.InputSpec(x.shape, x.dtype))

@app.custom_op
def ordered(x):
    return np.sort(x)

@app.custom_op
def declared(x):
    return x * 2

@declared.backward
def declared_grad(dy):
    return dy * 2

@app.custom_op(elementwise=True)
def cube(x):
    return x ** 3

@cube.backward
def cube_grad(x, dy):
    return dy * x * x

class Doubled(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return declared(x)

    @staticmethod
    def backward(ctx, dy):
        return dy * 2

def by_py_func_with_a_backward(x):
    return app.static.py_func(forward, x, app.static.InputSpec(x.shape, x.dtype), lambda x, y, dy: dy)
"""

Derive = Callable[..., str]


@pytest.fixture
def derive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Derive:
    """`opsmith derive ...` in a folder with mine.py; gives what it prints, or the message that it ends with."""
    (tmp_path / "mine.py").write_text(OPERATORS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    def run(*words: str, status: int = 0) -> str:
        assert main(["derive", *words]) == status
        out, err = capsys.readouterr()
        assert (err == "") == (status == 0)
        return err.removeprefix("error: ").rstrip() if status else out

    return run


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("cumulated", "def cumulated_gradient(x, dy):"),
        ("swish", "def swish_grad(x, dout):"),
        ("by_py_func", "def forward_grad(x, d"),
        ("declared", "def declared_grad(x, d"),
        ("cube", "def cube_grad(x, d"),
    ],
)
def test_it_prints_the_source_of_a_derived_gradient(name: str, first: str, derive: Derive):
    assert derive(f"mine.py:{name}").startswith(first)


def test_the_number_of_axes_is_that_of_the_shapes(derive: Derive):
    one, two = (derive("mine.py:totals", "--shape", shape) for shape in ("4", "4,6"))
    assert "x.shape[1]" not in one
    assert one != two


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mine.py:ordered"], r"operator ordered \(mine.py:\d+\) .*mine.py:\d+: `np.sort\(x\)` .*"),
        (["mine.py:by_py_func_with_a_backward"], r".*py_func.*has a backward, <lambda>; a gradient is derived for .*"),
        (
            ["mine.py:without"],
            r"without \(py_func\) has no gradient that is derived from its source: .*",
        ),
        (["relu"], r"relu \(built in\) has no gradient that is derived from its source: that is .*"),
        (["custom.swish", "--shape", "4", "--shape", "4"], "--shape was given 2 times, but custom.swish takes 1: x"),
        (["mine.py:cumulated", "--shape", "4"], r".*cumulated.*"),
        (["mine.py:nope"], r".*mine.py has no 'nope'.*"),
        (["mine.py:swish", "--shape", "a"], r"--shape a: expected whole numbers with commas, as in --shape 4,8"),
    ],
)
def test_what_it_cannot_print_ends_in_one_line(words: list[str], message: str, derive: Derive):
    assert re.fullmatch(
        message, derive(*words, status=2 if "nope" in words[0] or {"a", "custom.swish"} & {*words} else 1)
    )
