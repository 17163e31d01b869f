"""The table of slopes: the derivatives, as source, of the functions of numbers in Python, `math` and NumPy.

In a template `a` and `b` are the arguments, `y` is the result and `np` is NumPy. At a kink the slope is that of one
side, or zero; `docs/checking.md` says which.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from app.derivative.terms import filled, name, number, number_in, product

T = TypeVar("T")

_REMAINDER = ("1.0", "-np.rint((a - y) / b)")
"""Of `a - n * b`, with the integer n that the function itself took: rounded down, to zero or to the nearest."""

_SLOPES: dict[str, tuple[str, ...]] = {
    "exp": ("y",),
    "exp2": ("0.6931471805599453 * y",),
    "expm1": ("np.exp(a)",),
    "log": ("1.0 / a",),
    "log2": ("1.4426950408889634 / a",),
    "log10": ("0.4342944819032518 / a",),
    "log1p": ("1.0 / (1.0 + a)",),
    "sqrt": ("0.5 / y",),
    "cbrt": ("1.0 / (3.0 * y * y)",),
    "square": ("2.0 * a",),
    "reciprocal": ("-(y * y)",),
    "negative": ("-1.0",),
    "positive": ("1.0",),
    "abs": ("np.sign(a)",),
    "absolute": ("np.sign(a)",),
    "fabs": ("np.sign(a)",),
    "sin": ("np.cos(a)",),
    "cos": ("-np.sin(a)",),
    "tan": ("1.0 + y * y",),
    "arcsin": ("1.0 / np.sqrt((1.0 - a) * (1.0 + a))",),
    "arccos": ("-(1.0 / np.sqrt((1.0 - a) * (1.0 + a)))",),
    "arctan": ("1.0 / (1.0 + a * a)",),
    "sinh": ("np.cosh(a)",),
    "cosh": ("np.sinh(a)",),
    "tanh": ("1.0 - y * y",),
    "arcsinh": ("1.0 / np.hypot(a, 1.0)",),
    "arccosh": ("1.0 / (np.sqrt(a - 1.0) * np.sqrt(a + 1.0))",),
    "arctanh": ("1.0 / ((1.0 - a) * (1.0 + a))",),
    "erf": ("1.1283791670955126 * np.exp(-(a * a))",),
    "erfc": ("-1.1283791670955126 * np.exp(-(a * a))",),
    "degrees": ("57.29577951308232",),
    "radians": ("0.017453292519943295",),
    "rad2deg": ("57.29577951308232",),
    "deg2rad": ("0.017453292519943295",),
    "float": ("1.0",),
    "float32": ("1.0",),
    "float64": ("1.0",),
    "add": ("1.0", "1.0"),
    "subtract": ("1.0", "-1.0"),
    "multiply": ("b", "a"),
    "divide": ("1.0 / b", "-(y / b)"),
    "true_divide": ("1.0 / b", "-(y / b)"),
    "hypot": ("(a / y if y != 0 else 0.0)", "(b / y if y != 0 else 0.0)"),
    "arctan2": (
        "(b / np.hypot(a, b) / np.hypot(a, b) if a != 0 or b != 0 else 0.0)",
        "(-(a / np.hypot(a, b) / np.hypot(a, b)) if a != 0 or b != 0 else 0.0)",
    ),
    "logaddexp": ("np.exp(a - y)", "np.exp(b - y)"),
    "logaddexp2": ("np.exp2(a - y)", "np.exp2(b - y)"),
    "copysign": ("np.sign(a) * np.sign(y)", "0.0"),
    "remainder": _REMAINDER,
    "mod": _REMAINDER,
    "fmod": _REMAINDER,
    "maximum": ("1.0 if a >= b else 0.0", "1.0 if b > a else 0.0"),
    "minimum": ("1.0 if a <= b else 0.0", "1.0 if b < a else 0.0"),
    "fmax": ("1.0 if a >= b or b != b else 0.0", "1.0 if b > a or a != a else 0.0"),
    "fmin": ("1.0 if a <= b or b != b else 0.0", "1.0 if b < a or a != a else 0.0"),
    "max": ("0.0 if b > a else 1.0", "1.0 if b > a else 0.0"),
    "min": ("0.0 if b < a else 1.0", "1.0 if b < a else 0.0"),
}

ALIASES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
"""Functions of `math` that have another name in NumPy."""

_FLAT = (
    *("sign", "floor", "ceil", "rint", "round", "trunc", "fix", "int", "bool", "isnan", "isinf", "isfinite"),
    *("floor_divide", "heaviside", "signbit", "greater", "greater_equal", "less", "less_equal", "equal"),
    *("not_equal", "logical_and", "logical_or", "logical_not", "int8", "int16", "int32", "int64", "len", "range"),
)

EXTREMES = {
    "maximum": ("1.0 if a > b else 0.0", "0.0"),
    "minimum": ("1.0 if a < b else 0.0", "0.0"),
    "fmax": ("1.0 if a > b or b != b else 0.0", "0.0"),
    "fmin": ("1.0 if a < b or b != b else 0.0", "0.0"),
    "max": ("1.0 if a > b else 0.0", "0.0"),
    "min": ("1.0 if a < b else 0.0", "0.0"),
}
"""Functions that choose one of two arguments, with their slopes if the second is a constant, which wins a tie."""


def _every(name: str) -> list[Any]:
    return [f for module in (builtins, math, np) if callable(f := getattr(module, name, None))]


ROWS: dict[Any, str] = {f: name for name in _SLOPES for f in _every(name) if f not in (np.max, np.min)}
"""Functions with the names of their rows in the table."""
ROWS.update({f: row for alias, row in ALIASES.items() for f in _every(alias)})
ROWS.update({math.pow: "power", np.power: "power", np.float_power: "power", builtins.pow: "power", np.where: "where"})

FLAT = {f for name in _FLAT for f in _every(name)}


def row_of(function: Any) -> str:
    """The name of a function's row in the table; '' if it has none."""
    return ROWS.get(hashable(function), "")


def is_flat(function: Any) -> bool:
    """Whether the slope of a function is zero wherever it has one."""
    return hashable(function) in FLAT


def hashable(value: Any) -> Any:
    """A value that may be looked up in a table; None in place of one that has no hash."""
    try:
        hash(value)
    except TypeError:
        return None
    return value


def slopes_of(row: str) -> tuple[str, ...]:
    """The templates of a row."""
    return _SLOPES[row]


def slopes_along(row: str, arguments: Sequence[T], varying: Sequence[bool]) -> tuple[list[T], tuple[str, ...]]:
    """The arguments as `a`, `b` and `c` of the templates of a row, and the templates.

    Of an extreme of a constant and another argument, the constant is `b`.
    """
    if row in EXTREMES and not all(varying):
        return [*arguments][:: 1 if varying[0] else -1], EXTREMES[row]
    return [*arguments], _SLOPES[row]


BY_EXPONENT = "(y * np.log(a) if a > 0 or (a == 0 and n < 0) else 0.0)"
"""The slope of `y = a ** n` along the exponent."""


def by_base(base: ast.expr, exponent: ast.expr) -> ast.expr:
    """The slope of a power along its base."""
    power = number_in(exponent)
    if power is None:
        return filled("(n * a ** (n - 1) if n != 0 else 0.0)", {"a": base, "n": exponent})
    raised = base if power == 2 else ast.BinOp(base, ast.Pow(), number(power - 1))
    return product(exponent, number(1.0) if power == 1 else raised) or number(0.0)


def share_of_exponential(part: ast.expr, whole: ast.expr, subtracted: bool, numpy: str = "np") -> ast.expr:
    """How much of a sum with a constant an exponential is: all of it, once it overflows."""
    template = "-(a / b)" if subtracted else "a / b"
    return filled(f"(1.0 if np.isinf(a) else {template})", {"a": part, "b": whole, "np": name(numpy)})
