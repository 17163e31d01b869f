"""What `custom_op` refuses, and what it says: of what is decorated, and of what functions return."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import data

import app
from app import custom_op
from app.errors import DtypeError, OperatorError, ShapeError

PLACE = r"\(test_custom_op_checks\.py:\d+\)"


@pytest.mark.parametrize("what", [3, "text", [1]])
def test_what_is_no_function_is_refused(what: Any):
    with pytest.raises(
        OperatorError, match=rf"operator \w+ {PLACE}: what custom_op decorates must be a function, found"
    ):
        custom_op(name="it")(what)


def test_a_backward_or_infer_that_is_no_function_is_refused():
    with pytest.raises(OperatorError, match=rf"operator same {PLACE}: backward must be a function, found 3 \(int\)"):
        custom_op(lambda x: x, name="same").backward(3)
    with pytest.raises(OperatorError, match=rf"operator same {PLACE}: infer must be a function, found \[2\] \(list\)"):
        custom_op(lambda x: x, name="same", infer=[2])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda *xs: xs, "its function must name its parameters; 'xs' takes any number"),
        (lambda x, **settings: x, "its function must name its parameters; 'settings' takes any number"),
        (lambda: 1, "its function takes no input; parameters with a default are settings"),
        (lambda k=3: k, "its function takes no input"),
        (np.tanh, "the parameters of <ufunc 'tanh'> cannot be read; call it in a function of your own"),
        (max, "the parameters of <built-in function max> cannot be read"),
    ],
)
def test_a_function_must_say_its_parameters(function: Any, message: str):
    with pytest.raises(OperatorError, match=rf"operator it {PLACE}: {message}"):
        custom_op(function, name="it")


def test_the_place_is_the_users_even_where_the_package_is_reached_through_a_link(tmp_path: Path):
    (tmp_path / "app").symlink_to(Path(app.__file__).parent)
    (tmp_path / "mine.py").write_text("import app\nprint(app.custom_op(lambda x: x).where)\n")
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "mine.py:2", done.stderr


# --- Errors while running ---


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (
            lambda x: None,
            DtypeError,
            "its function <lambda> returned None as output 0, expected an array.*a return may be missing",
        ),
        (lambda x: (x, x), OperatorError, "its function <lambda> returned 2 values, expected 1"),
        (lambda x: "text", DtypeError, r"its function <lambda> returned str \(<U4\) as output 0"),
        (lambda x: x * 1j, DtypeError, r"its function <lambda> returned ndarray \(complex128\) as output 0"),
        (
            lambda x: {}["k"],
            OperatorError,
            r"its function <lambda> raised KeyError: 'k' \(test_custom_op_checks\.py:\d+\)",
        ),
        (
            lambda x: x if x > 0 else -x,
            OperatorError,
            r".* raised ValueError: .*ambiguous.*custom_op\(elementwise=True\)",
        ),
    ],
)
def test_what_the_function_returns_is_checked(function: Any, kind: type, message: str):
    with pytest.raises(kind, match=rf"operator it {PLACE}: {message}"):
        custom_op(function, name="it")(data(1.0, 2.0))


@pytest.mark.parametrize(
    ("backward", "kind", "message"),
    [
        (lambda x, dy: dy[:1], ShapeError, r"the gradient of x has shape \[1\], expected that of x, \[2\]"),
        (lambda x, dy: (dy, dy), OperatorError, "its function <lambda> returned 2 values, expected 1"),
        (lambda x, dy: "dx", DtypeError, r"its function <lambda> returned str"),
        (lambda x, dy: 1 / 0, OperatorError, "its function <lambda> raised ZeroDivisionError"),
    ],
)
def test_what_the_backward_function_returns_is_checked(backward: Any, kind: type, message: str):
    operator = custom_op(lambda x: x * 1, name="it")
    operator.backward(backward)
    with pytest.raises(kind, match=rf"the gradient of operator it {PLACE}: {message}"):
        operator(data(1.0, 2.0)).sum().backward()


def test_without_backward_gradients_stop():
    x = data(2.0)
    y = custom_op(lambda x: x * 3, name="stop")(x)
    assert y.stop_gradient
    with pytest.warns(UserWarning, match="backward from a Tensor with stop_gradient=True does nothing"):
        y.backward()
