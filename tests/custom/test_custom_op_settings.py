"""Settings of custom operators: by place and by name, with and without a default, in every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data, run, variable
from numba import njit

from app import custom_op, static
from app.errors import OperatorError

PLACE = r"\(test_custom_op_settings\.py:\d+\)"


@custom_op
def scaled(x, factor=2.0, *, power=1):
    return factor * x**power


@scaled.backward
def _(x, dy, power, factor):
    return dy * factor * power * x ** (power - 1)


@pytest.mark.parametrize(
    ("call", "value", "slope"),
    [
        (lambda x: scaled(x), 6, 2),
        (lambda x: scaled(x, 5.0), 15, 5),
        (lambda x: scaled(x, 1.0, 2), 9, 6),
        (lambda x: scaled(x, power=2, factor=3.0), 27, 18),
        (lambda x: scaled(x=x, factor=-1.0), -3, -1),
    ],
)
def test_settings_are_given_by_place_or_name(call: Any, value: float, slope: float):
    x = data(3.0)
    y = call(x)
    y.backward()
    assert (y.item(), x.grad.item()) == (value, slope)
    v = variable("x", 1, dtype="float64")
    y = call(v)
    found = run(y, *static.gradients(y, v), x=np.array([3.0]))
    assert [f.item() for f in found] == [value, slope]


def test_settings_are_printed_where_they_are_not_the_usual_ones():
    v = variable("x", 1)
    scaled(v)
    scaled(v, power=3)
    assert [str(op) for op in v.block.ops] == ["scaled.y_0 = scaled(x)", "scaled.y_1 = scaled(x, power=3)"]


@pytest.mark.slow
@pytest.mark.parametrize("elementwise", [True, False])
def test_engines_give_parameters_by_name_too(elementwise: bool):
    wrapped = (lambda f: f) if elementwise else njit
    operator = custom_op(elementwise=elementwise, name="line")(wrapped(lambda x, slope=2.0: x * slope))
    operator.backward(wrapped(lambda slope, dy, x: dy * slope + x * 0))
    x = variable("x", None, 2)
    y = operator(x, 5.0)
    (g,) = static.gradients(y * y, x)
    feed = {"x": np.ones((3, 2), "float32")}
    for engine in ("reference", "compiled"):
        value, slope = static.Executor(engine=engine).run(feed=feed, fetch_list=[y, g])
        np.testing.assert_array_equal(value, np.full((3, 2), 5))
        np.testing.assert_array_equal(slope, np.full((3, 2), 50))


def test_a_numba_function_has_no_parameters_by_keyword_only():
    message = rf"operator line {PLACE}: Numba has no keyword-only parameters; give 'slope' a default instead"
    with pytest.raises(OperatorError, match=message):

        @custom_op
        @njit
        def line(x, *, slope=2.0):
            return x * slope


def test_an_unknown_setting_is_an_error():
    with pytest.raises(
        OperatorError, match=r"operator scaled .* has no parameter 'facto'; it takes \(x, factor, power\)"
    ):
        scaled(data(1.0), facto=2)


def test_a_setting_without_a_default_is_required():
    @custom_op
    def shifted(x, *, by):
        return x + by

    assert shifted(data(1.0), by=2.0).item() == 3
    with pytest.raises(OperatorError, match=r"operator shifted .* needs by"):
        shifted(data(1.0))
