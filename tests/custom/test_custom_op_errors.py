"""What `custom_op` refuses, with the place of the operator: functions, parameters, and what functions return."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import data, variable
from numba import njit

import app
from app import custom_op, static
from app.errors import DtypeError, OperatorError, ShapeError
from app.static import InputSpec

PLACE = r"\(test_custom_op_errors\.py:\d+\)"
IT = rf"operator it {PLACE}"


def make(function: Any = lambda x: x, **options: Any) -> Any:
    return custom_op(function, name="it", **options)


def on_spec(**options: Any) -> Any:
    return make(**options)(variable("x", 1))


def line(x, factor=2.0, *, by):
    return x * factor + by


INFERRED = rf"{IT} of \(float32\[1\]\): infer returned .*, expected a Spec for each of out"
UNREADABLE = rf"{IT}: the parameters of .* cannot be read; call it in a function of your own"

WRONG = [
    *(
        (lambda what=what: custom_op(name="it")(what), rf"operator \w+ {PLACE}: what custom_op decorates must be a fun")
        for what in (3, "text", [1])
    ),
    (lambda: make().backward(3), rf"{IT}: backward must be a function, found 3 \(int\)"),
    (lambda: make(infer=[2]), rf"{IT}: infer must be a function, found \[2\] \(list\)"),
    (lambda: make(lambda *xs: xs), f"{IT}: its function must name its parameters; 'xs' takes any number"),
    (lambda: make(lambda x, **more: x), f"{IT}: its function must name its parameters; 'more' takes any number"),
    (lambda: make(lambda: 1), f"{IT}: its function takes no input; parameters with a default are settings"),
    (lambda: make(lambda k=3: k), f"{IT}: its function takes no input"),
    (lambda: make(np.tanh), UNREADABLE),
    (lambda: make(max), UNREADABLE),
    (lambda: make(njit(line)), f"{IT}: Numba has no keyword-only parameters; give 'by' a default instead"),
    (
        lambda: make().backward(lambda x, grad: grad),
        rf"{IT}: its gradient has a parameter 'grad'; expected one of x, out, dout \(y and dy",
    ),
    (
        lambda: make().backward(lambda x, dx: dx),
        f"{IT}: its gradient has a parameter 'dx'; expected one of x, out, dout",
    ),
    (lambda: make(lambda x, w: x)(data(1.0)), f"{IT} .*needs its input 'w'; it takes \\(x, w\\)"),
    (lambda: make(line)(data(1.0), b=2), f"{IT} .*has no parameter 'b'; it takes \\(x, factor, by\\)"),
    (lambda: make(line)(data(1.0)), f"{IT} .*needs by"),
    (
        lambda: make(lambda x: x if len(x) % 2 else x.sum(0))(static.data("x", [None, 3])),
        r"has shapes \(3,\) and \(3, 3\) and \(5, 3\) for different batch sizes",
    ),
    (
        lambda: make(lambda x: np.linalg.inv(x))(variable("x", 2, 2)),
        rf"{IT} of .*LinAlgError.*custom_op\(infer=\.\.\.\) can",
    ),
    *(
        (lambda told=told: on_spec(infer=lambda x: told), INFERRED)
        for told in (3, [InputSpec([1]), InputSpec([1])], ([2, 3], "float32"), None)
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_functions_arguments_and_specs_are_errors(call: Any, message: str):
    with pytest.raises(OperatorError, match=message):
        call()


RETURNED = "its function <lambda> returned "


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: None, DtypeError, RETURNED + "None as output 0, expected an array.*a return may be missing"),
        (lambda x: (x, x), OperatorError, RETURNED + "2 values, expected 1"),
        (lambda x: "text", DtypeError, RETURNED + r"str \(<U4\) as output 0"),
        (lambda x: x * 1j, DtypeError, RETURNED + r"ndarray \(complex128\) as output 0"),
        (lambda x: {}["k"], OperatorError, rf"its function <lambda> raised KeyError: 'k' {PLACE}"),
        (lambda x: x if x > 0 else -x, OperatorError, "raised ValueError: .*ambiguous.*custom_op\\(elementwise=True"),
    ],
)
def test_wrong_results_of_the_function_are_errors(function: Any, kind: type, message: str):
    with pytest.raises(kind, match=f"{IT}: .*{message}"):
        make(function)(data(1.0, 2.0))


@pytest.mark.parametrize(
    ("backward", "kind", "message"),
    [
        (lambda x, dy: dy[:1], ShapeError, r"the gradient of x has shape \[1\], expected that of x, \[2\]"),
        (lambda x, dy: (dy, dy), OperatorError, RETURNED + "2 values, expected 1"),
        (lambda x, dy: "dx", DtypeError, RETURNED + "str"),
        (lambda x, dy: 1 / 0, OperatorError, "its function <lambda> raised ZeroDivisionError"),
    ],
)
def test_wrong_results_of_backward_are_errors(backward: Any, kind: type, message: str):
    operator = make(lambda x: x * 1)
    operator.backward(backward)
    with pytest.raises(kind, match=f"the gradient of {IT}: {message}"):
        operator(data(1.0, 2.0)).sum().backward()


def test_without_backward_gradients_stop():
    y = make(lambda x: x * 3)(data(2.0))
    assert y.stop_gradient
    with pytest.warns(UserWarning, match="backward from a Tensor with stop_gradient=True does nothing"):
        y.backward()


def test_the_place_is_the_users_even_where_the_package_is_imported_through_a_link(tmp_path: Path):
    (tmp_path / "app").symlink_to(Path(app.__file__).parent)
    (tmp_path / "mine.py").write_text("import app\nprint(app.custom_op(lambda x: x).where)\n")
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "mine.py:2", done.stderr
