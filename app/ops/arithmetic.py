"""Arithmetic on two values, with broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.composed import also_named, composed, of_package
from app.ops.elementwise import elementwise
from app.ops.logic import isnan, where
from app.ops.math import log


@elementwise
def add(x: Any, y: Any) -> Any:
    """The sum of two values."""
    return x + y


@add.gradient
def _(dout: Any) -> Any:
    return dout, dout


@elementwise(numbers=True)
def subtract(x: Any, y: Any) -> Any:
    """The first value less the second."""
    return x - y


@subtract.gradient_of("x")
def _(dout: Any) -> Any:
    return dout


@subtract.gradient_of("y")
def _(dout: Any) -> Any:
    return -dout


@elementwise
def multiply(x: Any, y: Any) -> Any:
    """The product of two values, element by element."""
    return x * y


@multiply.gradient_of("x")
def _(y: Any, dout: Any) -> Any:
    return dout * y


@multiply.gradient_of("y")
def _(x: Any, dout: Any) -> Any:
    return dout * x


@elementwise(floating=True)
def divide(x: Any, y: Any) -> Any:
    """The quotient of two values; whole numbers are divided as floats."""
    return x / y


@divide.gradient_of("x")
def _(y: Any, dout: Any) -> Any:
    return dout / y


@divide.gradient_of("y")
def _(y: Any, out: Any, dout: Any) -> Any:
    return -dout * out / y


@elementwise(numbers=True, checked=True)
def floor_divide(x: Any, y: Any) -> Any:
    """The quotient rounded down."""
    return x // y


@elementwise(numbers=True, checked=True)
def remainder(x: Any, y: Any) -> Any:
    """What `floor_divide` leaves, with the sign of the divisor."""
    return x % y


@remainder.gradient_of("x")
def _(dout: Any) -> Any:
    return dout


@remainder.gradient_of("y")
def _(x: Any, y: Any, dout: Any) -> Any:
    return -dout * floor_divide(x, y)


@elementwise(numbers=True, checked=True)
def pow(x: Any, y: Any) -> Any:
    """The first value to the power of the second."""
    return x**y


@pow.gradient_of("x")
def _(x: Any, y: Any, dout: Any) -> Any:
    # y * x**(y-1) without the 0 * infinity that a power of zero would give
    return dout * where(y == 0, 0.0, y * x ** where(y == 0, 1.0, y - 1))


@pow.gradient_of("y")
def _(x: Any, out: Any, dout: Any) -> Any:
    return dout * out * where(x > 0, log(where(x > 0, x, 1.0)), 0.0)


@elementwise
def maximum(x: Any, y: Any) -> Any:
    """The larger of two values; where they are equal, each gets half of the gradient."""
    return np.maximum(x, y)


@elementwise
def minimum(x: Any, y: Any) -> Any:
    """The smaller of two values; where they are equal, each gets half of the gradient."""
    return np.minimum(x, y)


@maximum.gradient_of("x")
@minimum.gradient_of("x")
def _(x: Any, out: Any, y: Any, dout: Any) -> Any:
    return _share(x, y, out, dout)


@maximum.gradient_of("y")
@minimum.gradient_of("y")
def _(x: Any, out: Any, y: Any, dout: Any) -> Any:
    return _share(y, x, out, dout)


def _share(mine: Any, other: Any, out: Any, dout: Any) -> Any:
    return where(mine == other, dout * 0.5, where(mine == out, dout, 0.0))


@composed
def fmax(x: Any, y: Any, name: Any = None) -> Any:
    """The larger of two values; where one is not a number, the other."""
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


@composed
def fmin(x: Any, y: Any, name: Any = None) -> Any:
    """The smaller of two values; where one is not a number, the other."""
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


@composed
def lerp(x: Any, y: Any, weight: Any, name: Any = None) -> Any:
    """The value that lies `weight` of the way from one to another."""
    return x + (y - x) * weight


@of_package
def add_n(inputs: Any, name: Any = None) -> Any:
    """The sum of several values of one shape."""
    values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


also_named(remainder, "mod", "floor_mod")
