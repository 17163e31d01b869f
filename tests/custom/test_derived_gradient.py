"""Operators of single numbers without a backward get one that is derived from their source."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import custom_op, static
from app.autograd import gradcheck, gradgradcheck
from app.custom.derivative.making import derived_gradient
from app.custom.derivative.scope import UnderivableError
from app.custom.references import OperatorTable, read_operators
from app.engine.compiled.explain import explain
from app.errors import GradientError


@njit
def stretched(u, by=2.0):
    if u > 0:
        return u * by
    return math.exp(u) * by


def swish(x):
    return x / (1 + np.exp(-x))


def choice(x):
    return math.log(x) + stretched(x * x) if x > 0.5 else abs(x) ** 1.5


REFERRED = custom_op(elementwise=True)(swish)


def points(dtype: str = "float64") -> app.Tensor:
    return app.to_tensor([[-1.3, -0.4, 0.2], [0.7, 1.2, 1.9]], dtype, stop_gradient=False)


def test_the_source_of_the_gradient_can_be_read():
    assert custom_op(swish, elementwise=True).gradient_source == (
        "def swish_grad(x, dout):\n"
        "    v1 = np.exp(-x)\n"
        "    v2 = 1 + v1\n"
        "    v3 = x / v2\n"
        "    return dout * (1.0 / v2 + v3 * (1.0 - 1 / v2))\n"
    )
    names = re.findall(r"^def (\w+)", custom_op(choice, elementwise=True).gradient_source, re.MULTILINE)
    assert names == ["stretched_slopes", "choice_grad"]


def test_settings_reach_the_derived_gradient():
    operator = custom_op(lambda x, slope=0.1: x if x > 0 else x * slope, elementwise=True)
    x = app.to_tensor([-1.0], "float64", stop_gradient=False)
    assert app.grad(operator(x, slope=0.3), x)[0].item() == 0.3
    assert app.grad(operator(x), x)[0].item() == 0.1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: max(x, 0.0), 0),
        (lambda x: max(0.0, x), 0),
        (lambda x: np.maximum(0.0, x), 0),
        (lambda x: min(x, 0.0), 0),
        (lambda x: abs(x), 0),
        (lambda x: x if x >= 0 else 0.0, 1),
    ],
)
def test_the_slope_at_a_kink_is_that_of_the_branch_that_runs_or_of_a_constant(function: Any, expected: float):
    assert derived_gradient(function, ["x"], ["dy"])(0.0, 1.0) == expected


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    "function", [swish, lambda x: math.log(1 + np.exp(x)), lambda x: np.log1p(np.exp(x)), lambda x: 1 / (np.exp(x) + 1)]
)
def test_the_gradient_of_an_exponential_that_overflows_is_a_number(function: Any):
    gradient = derived_gradient(function, ["x"], ["dy"])
    assert {float(gradient(np.float64(x), 1.0)) for x in (-1000.0, 1000.0)} <= {0.0, 1.0}


def test_a_declared_backward_is_used_instead():
    operator = custom_op(swish, elementwise=True)
    operator.backward(lambda x, dy: dy * 7)
    x = points()
    assert app.grad(operator(x), x)[0].numpy().tolist() == [[7] * 3] * 2
    assert operator.gradient_source == ""


def built(function: Any, declared: Any = None) -> tuple[static.Program, list[Any]]:
    operator = custom_op(function, elementwise=True, name="operator")
    if declared is not None:
        operator.backward(declared)
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x = static.data("x", [None, 4])
        x.stop_gradient = False
        y = operator(x)
        (first,) = static.gradients(y, x)
        fetched = [y, first]
        if declared is None:
            fetched += static.gradients(first, x)
    return program, fetched


@pytest.mark.slow
def test_both_engines_and_tensors_agree_with_finite_differences_and_all_is_inlined():
    operator = custom_op(choice, elementwise=True)
    assert gradcheck(operator, points(), atol=1e-6, rtol=1e-5)
    assert gradgradcheck(operator, points())
    program, fetched = built(choice)
    feed = {"x": np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4)}
    reference, compiled = (
        static.Executor(engine=engine).run(program, feed=feed, fetch_list=fetched)
        for engine in ("reference", "compiled")
    )
    for expected, found in zip(reference, compiled, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert "Python call" not in explain(program, [v.name for v in fetched], source=False)


def test_it_compiles_to_the_same_code_as_a_gradient_written_by_hand():
    def by_hand(x, dy):
        return dy if x > 0 else dy * 0.1

    def leaky(x):
        return x if x > 0 else x * 0.1

    def made(program: static.Program, fetched: list[Any]) -> list[list[str]]:
        return [line.split()[1:] for line in explain(program, [v.name for v in fetched[:2]], False).splitlines()[2:]]

    assert made(*built(leaky)) == made(*built(leaky, by_hand))


# --- What cannot be derived ---


def lgamma(x):
    return math.lgamma(x)


def test_an_operator_without_a_gradient_runs_and_backward_is_an_error():
    operator = custom_op(lgamma, elementwise=True)
    y = operator(app.to_tensor([4.0], stop_gradient=False))
    assert y.item() == pytest.approx(math.lgamma(4.0))
    place = r"operator lgamma \(test_derived_gradient\.py:\d+\) has no backward, and none can be derived: "
    reason = r".*:\d+: `math.lgamma\(x\)` calls something without a known slope.*; write one with @lgamma\.backward"
    with pytest.raises(GradientError, match=place + reason):
        y.backward()
    with pytest.raises(UnderivableError, match=place + reason):
        _ = operator.gradient_source


def test_a_function_without_a_file_is_an_error():
    made: dict[str, Any] = {}
    exec("def unseen(x):\n    return x * x", made)
    with pytest.raises(UnderivableError, match="the source of unseen cannot be read"):
        _ = custom_op(made["unseen"], elementwise=True).gradient_source


def test_derived_gradients_are_written_to_files_as_gradients_of_their_operator():
    table = OperatorTable()
    first = REFERRED.gradient_operator
    numbers = [table.number_of(definition) for definition in (REFERRED, first, first.gradient_operator)]
    find = read_operators(table.entries, "file", [REFERRED], (), "read(")
    assert [find(number) for number in numbers] == [REFERRED, first, first.gradient_operator]
