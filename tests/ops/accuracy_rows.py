"""How exact elementwise functions and their gradients are: one table, in units in the last place (ULP).

What is right comes from float64, with a formula for each slope that loses no digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from app.custom import custom_op
from app.nn import functional as F  # noqa: N812
from app.ops.definition import REGISTRY

Formula = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """A function, what is right, and by how many units its results and its slopes may be off.

    The unit is the spacing of numbers at the right result, but at least that at `near`: where two terms cancel, as at
    a zero of a slope, no formula in the same precision has more digits.
    """

    function: Formula
    right: Formula
    slopes: tuple[Formula, ...]
    bound: float
    slope_bound: float
    domain: Formula = lambda *x: True
    near: float | Formula = 0.0
    slope_near: float | Formula = 0.0


def smallest(x: np.ndarray) -> Any:
    """A size below which products with numbers such as exp(x), which are subnormal, lose digits."""
    return 128 * np.finfo(x.dtype).tiny


def of_input(x: np.ndarray) -> Any:
    return np.abs(x.astype(np.float64))


def operator(name: str, right: Formula, *rest: Any, **options: Any) -> tuple[str, Row]:
    *slopes, bound, slope_bound = rest
    return name, Row(REGISTRY[name], right, tuple(slopes), bound, slope_bound, **options)


def layer(function: Formula, right: Formula, slope: Formula, *bounds: float, **options: Any) -> tuple[str, Row]:
    return f"{function.__name__} of nn", Row(function, right, (slope,), *bounds, **options)


def derived(text: str, right: Formula, slope: Formula, *bounds: float, **options: Any) -> tuple[str, Row]:
    """A user's function, with the gradient that is derived from its source."""
    names: dict[str, Any] = {"np": np, "math": math}
    source = f"def function(x):\n    return {text}\n"
    return f"derived {text}", Row(written(source, names), right, (slope,), *bounds, **options)


def written(source: str, names: dict[str, Any]) -> Any:
    from modules_of_text import module_of_text

    return custom_op(module_of_text(source, **names).function, elementwise=True)


exp, log, log1p, sqrt = np.exp, np.log, np.log1p, np.sqrt


def sigmoid(x: Any) -> Any:
    return special.expit(x)


def softplus(x: Any) -> Any:
    return np.maximum(x, 0) + log1p(exp(-abs(x)))


def tanh_slope(x: Any) -> Any:
    return 4 * sigmoid(2 * x) * sigmoid(-2 * x)


def silu_slope(x: Any) -> Any:
    return sigmoid(x) * (1 + x * sigmoid(-x))


def expm1_below(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def exp_below(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, 1, alpha * exp(np.minimum(x, 0)))


def mish_slope(x: Any) -> Any:
    return np.tanh(softplus(x)) + x * tanh_slope(softplus(x)) * sigmoid(x)


def none(*x: Any) -> Any:
    return 0 * x[0]


SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772

ROWS: dict[str, Row] = dict(
    [
        operator("abs", abs, np.sign, 0, 0),
        operator("acos", np.arccos, lambda x: -1 / sqrt((1 - x) * (1 + x)), 3, 3),
        operator("acosh", np.arccosh, lambda x: 1 / sqrt(x - 1) / sqrt(x + 1), 2, 4),
        operator("add", np.add, lambda x, y: x * 0 + 1, lambda x, y: x * 0 + 1, 0.5, 0),
        operator("asin", np.arcsin, lambda x: 1 / sqrt((1 - x) * (1 + x)), 3, 3),
        operator("asinh", np.arcsinh, lambda x: 1 / np.hypot(x, 1), 2, 3),
        operator("assign", lambda x: x, lambda x: x * 0 + 1, 0, 0),
        operator("atan", np.arctan, lambda x: 1 / (1 + x * x), 3, 5),
        operator(
            "atan2",
            np.arctan2,
            lambda x, y: y / (x * x + y * y),
            lambda x, y: -x / (x * x + y * y),
            4,
            8,
            domain=lambda x, y: (x != 0) & (y != 0),
        ),
        operator("atanh", np.arctanh, lambda x: 1 / ((1 - x) * (1 + x)), 2, 2, domain=lambda x: abs(x) <= 1),
        operator("ceil", np.ceil, none, 0, 0),
        operator("clip", lambda x: x, lambda x: x * 0 + 1, 0, 0),
        operator("cos", np.cos, lambda x: -np.sin(x), 2, 2),
        operator("cosh", np.cosh, np.sinh, 3, 3),
        operator("divide", np.divide, lambda x, y: 1 / y, lambda x, y: -x / y / y, 0.5, 8, domain=lambda x, y: y != 0),
        operator("elu", expm1_below, exp_below, 3, 3),
        operator("erf", special.erf, lambda x: 2 / sqrt(math.pi) * exp(-x * x), 1, 96),
        operator("exp", exp, exp, 3, 3),
        operator("expm1", np.expm1, exp, 3, 3),
        operator("floor", np.floor, none, 0, 0),
        operator("leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x), lambda x: np.where(x > 0, 1, 0.01), 1, 1),
        operator("log", log, lambda x: 1 / x, 4, 1),
        operator("log10", np.log10, lambda x: math.log10(math.e) / x, 4, 1),
        operator("log1p", log1p, lambda x: 1 / (1 + x), 2, 2),
        operator("log2", np.log2, lambda x: math.log2(math.e) / x, 2, 2),
        operator("maximum", np.maximum, lambda x, y: (x > y) + (x == y) / 2, lambda x, y: (x < y) + (x == y) / 2, 0, 0),
        operator("minimum", np.minimum, lambda x, y: (x < y) + (x == y) / 2, lambda x, y: (x > y) + (x == y) / 2, 0, 0),
        operator("multiply", np.multiply, lambda x, y: y, lambda x, y: x, 0.5, 0),
        operator("negative", np.negative, lambda x: x * 0 - 1, 0, 0),
        operator(
            "pow",
            np.power,
            lambda x, y: y * x ** (y - 1),
            lambda x, y: x**y * log(x),
            2,
            128,
            domain=lambda x, y: (x > 0) & (x**y < 6e4) & (x**y > 6.2e-5) & (x ** (y - 1) < 6e4),
        ),
        operator("reciprocal", lambda x: 1 / x, lambda x: -1 / x / x, 0.5, 2),
        operator("relu", lambda x: np.maximum(x, 0), lambda x: x > 0, 0, 0),
        operator("round", np.rint, none, 0, 0),
        operator("rsqrt", lambda x: 1 / sqrt(x), lambda x: -0.5 / sqrt(x) / x, 2, 6, domain=lambda x: x != 0),
        operator("sigmoid", sigmoid, lambda x: sigmoid(x) * sigmoid(-x), 4, 5),
        operator("sign", np.sign, none, 0, 0),
        operator("silu", lambda x: x * sigmoid(x), silu_slope, 4, 5, near=smallest, slope_near=1),
        operator("sin", np.sin, np.cos, 2, 2),
        operator("sinh", np.sinh, np.cosh, 2, 3),
        operator("softplus", softplus, sigmoid, 4, 4),
        operator("softsign", lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2, 2, 4),
        operator("sqrt", sqrt, lambda x: 0.5 / sqrt(x), 0.5, 1.5),
        operator("square", np.square, lambda x: 2 * x, 0.5, 0),
        operator("subtract", np.subtract, lambda x, y: x * 0 + 1, lambda x, y: x * 0 - 1, 0.5, 0),
        operator("tan", np.tan, lambda x: 1 + np.tan(x) ** 2, 4, 8),
        operator("tanh", np.tanh, tanh_slope, 2, 2, slope_near=1),  # made of the result, as in PyTorch
        operator("trunc", np.trunc, none, 0, 0),
        # made of several operators
        layer(F.celu, expm1_below, exp_below, 3, 3),
        layer(
            F.gelu,
            lambda x: x * special.ndtr(x),
            lambda x: special.ndtr(x) + x * exp(-x * x / 2) / sqrt(2 * math.pi),
            2,
            4,
            near=of_input,
            slope_near=1,
        ),
        layer(F.log_sigmoid, lambda x: -softplus(-x), lambda x: sigmoid(-x), 4, 4),
        layer(F.mish, lambda x: x * np.tanh(softplus(x)), mish_slope, 4, 12, near=smallest, slope_near=1),
        layer(F.selu, lambda x: SCALE * expm1_below(x, ALPHA), lambda x: SCALE * exp_below(x, ALPHA), 4, 4),
        layer(
            F.hardswish,
            lambda x: x * np.clip(x + 3, 0, 6) / 6,
            lambda x: np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5)),
            2,
            2,
            domain=lambda x: abs(abs(x) - 3) > 0.01,
            slope_near=1,
        ),
        layer(F.softshrink, lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0), lambda x: abs(x) > 0.5, 0.5, 0),
        layer(F.tanhshrink, lambda x: x - np.tanh(x), lambda x: np.tanh(x) ** 2, 2, 2, near=of_input, slope_near=1),
        # derived
        derived("np.log1p(np.exp(x))", softplus, sigmoid, 3, 5, domain=lambda x: x < 11),
        derived("np.log(1 + np.exp(x))", softplus, sigmoid, 3, 5, domain=lambda x: x < 11, near=1),
        derived("1 / (1 + np.exp(-x))", sigmoid, lambda x: sigmoid(x) * sigmoid(-x), 4, 8, domain=lambda x: x > -11),
        derived(
            "x / (1 + np.exp(-x))", lambda x: x * sigmoid(x), silu_slope, 4, 8, domain=lambda x: x > -11, slope_near=1
        ),
        derived("np.arccosh(x)", np.arccosh, lambda x: 1 / sqrt(x - 1) / sqrt(x + 1), 2, 4),
        derived("np.arcsinh(x)", np.arcsinh, lambda x: 1 / np.hypot(x, 1), 2, 3),
        derived("np.arctanh(x)", np.arctanh, lambda x: 1 / ((1 - x) * (1 + x)), 2, 2, domain=lambda x: abs(x) <= 1),
        derived("np.arcsin(x)", np.arcsin, lambda x: 1 / sqrt((1 - x) * (1 + x)), 3, 3),
        derived("np.expm1(x)", np.expm1, exp, 3, 3),
        derived("np.tanh(x)", np.tanh, tanh_slope, 2, 2, slope_near=1),
    ]
)
