"""The known slopes of functions agree with finite differences."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text, one_sided, slope

from app.derivative.expressions import COUNTS
from app.derivative.making import derived_gradient
from app.derivative.scope import UnderivableError
from app.derivative.slopes import FLAT, ROWS, slopes_of

EDGES = (-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0)
TAKES = {len: None, range: None}
"""Of the functions that are flat those that take no number."""


def name_of(function: Any) -> str:
    """`math.fmod`: where a function is found, as two of one name may differ."""
    for module in (builtins, math, np):
        for name, value in vars(module).items():
            if value is function:
                return f"{module.__name__}.{name}"
    raise AssertionError(function)


def count_of(function: Any) -> int:
    row = ROWS.get(function)
    if row is not None:
        return COUNTS.get(row) or len(slopes_of(row))
    return function.nin if isinstance(function, np.ufunc) else 1


def prepared(function: Any) -> tuple[Callable[..., Any], Callable[..., Any], list[str]]:
    """A function that calls one of the table with its inputs, its gradient, and the inputs' names."""
    inputs = ["x", "y", "z"][: count_of(function)]
    first = "x > 0" if ROWS.get(function) == "where" else "x"
    arguments = ", ".join([first, *inputs[1:]])
    module = module_of_text(f"def f({', '.join(inputs)}):\n    return called({arguments}) + 0.0\n", called=function)
    return module.f, derived_gradient(module.f, inputs, ["arriving"]), inputs


def gradients(gradient: Callable[..., Any], at: list[np.float64]) -> tuple[float, ...]:
    result = gradient(*at, 1.0)
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", ROWS, ids=name_of)
def test_slopes_agree_with_finite_differences(function: Any):
    called, gradient, inputs = prepared(function)
    random, compared = Random(1), 0
    for _ in range(80):
        scale = random.choice([0.9, 3.0, 8.0])
        at = [np.float64(random.uniform(-scale, scale)) for _ in inputs]
        for place in range(len(inputs)):
            expected = slope(called, at, place)
            if expected is not None:
                assert gradients(gradient, at)[place] == pytest.approx(expected, rel=2e-4, abs=2e-4), at
                compared += 1
    assert compared > 10


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", ROWS, ids=name_of)
def test_the_slope_at_an_edge_is_between_those_of_both_sides_or_zero(function: Any):
    called, gradient, inputs = prepared(function)
    for place in range(len(inputs)):
        for number in EDGES:
            for other in EDGES:
                at = [np.float64(number if p == place else other) for p in range(len(inputs))]
                sides = [one_sided(called, at, place, step) for step in (1e-7, -1e-7)]
                if None in sides or max(map(abs, sides)) > 1e3:  # a jump, or the domain's end
                    continue
                slope = gradients(gradient, at)[place]
                assert min(*sides, 0.0) - 1e-3 <= slope <= max(*sides, 0.0) + 1e-3, (at, sides)


@pytest.mark.parametrize("function", sorted(FLAT - TAKES.keys(), key=name_of), ids=name_of)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_flat_functions_have_the_slope_zero(function: Any):
    called, gradient, inputs = prepared(function)
    random = Random(2)
    for _ in range(30):
        at = [np.float64(random.uniform(-3, 3)) for _ in inputs]
        for place in range(len(inputs)):
            assert slope(called, at, place) in (None, 0.0)
            assert gradients(gradient, at)[place] == 0.0


NAN = float("nan")


@pytest.mark.parametrize(("first", "second"), [(NAN, -0.5), (1.5, NAN), (1.5, -0.5)])
@pytest.mark.parametrize("function", [np.fmax, np.fmin, max, min], ids=name_of)
def test_the_extreme_of_nan_and_a_number_has_the_slope_of_the_one_that_is_taken(
    function: Any, first: float, second: float
):
    called, gradient, _ = prepared(function)
    extreme = called(first, second)
    taken = [extreme == value or (math.isnan(extreme) and math.isnan(value)) for value in (first, second)]
    assert gradient(first, second, 1.0) == (float(taken[0]), float(taken[1]))


def test_a_constant_keeps_its_place_in_an_extreme():
    module = module_of_text("def f(x):\n    y = max(0.0, x)\n    return y * y\n")
    gradient = derived_gradient(module.f, ["x"], ["arriving"])
    assert (gradient(NAN, 1.0), gradient(3.0, 1.0), gradient(-1.0, 1.0)) == (0.0, 6.0, 0.0)


@pytest.mark.parametrize(
    ("a", "b"), [(5.0, 1.8), (-5.0, 1.8), (5.0, -1.8), (0.3, 0.1), (1e-20, -3.0), (7.5, 2.5), (2.0, 0.7)]
)
@pytest.mark.parametrize(
    ("function", "quotient"),
    [
        (math.remainder, lambda a, b: round(a / b)),
        (math.fmod, lambda a, b: math.trunc(a / b)),
        (np.fmod, lambda a, b: math.trunc(a / b)),
        (np.mod, lambda a, b: math.floor(a / b)),
    ],
)
def test_the_slope_of_a_remainder_is_its_quotient(function: Any, quotient: Any, a: float, b: float):
    _, gradient, _ = prepared(function)
    assert gradient(np.float64(a), np.float64(b), 1.0) == (1.0, -quotient(Fraction(a), Fraction(b)))


@pytest.mark.parametrize(
    "call",
    [
        "math.log(x, 2.0)", "np.exp(x, y)", "pow(x, 2, 3)", "np.where(x)", "np.clip(x, None, None)",
        "np.maximum(x, y, y)", "max(x)", "np.clip(x, a_min=0, a_max=1)", "np.sinc(x)", "math.ldexp(x, 2)",
        "divmod(x, y)",
        "math.hypot(x)", "math.hypot(x, y, y)", "np.add(*(x, y))", "max((x, y))", "np.round(x) + x.real",
        "complex(x)", "math.gamma(x)",
    ],
)  # fmt: skip
def test_unknown_calls_are_errors(call: str):
    module = module_of_text(f"import math\nimport numpy as np\ndef f(x, y):\n    return {call}\n")
    with pytest.raises(UnderivableError, match=r"module_of_text_\d+.py:4: `"):
        derived_gradient(module.f, ["x", "y"], ["arriving"])
