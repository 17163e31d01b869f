"""Mathematical functions of one value, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.creation import zeros_like
from app.ops.elementwise import elementwise


@elementwise(numbers=True)
def negative(x: Any) -> Any:
    """The value with its sign turned."""
    return -x


@negative.gradient
def _(dout: Any) -> Any:
    return -dout


@elementwise(floating=True)
def exp(x: Any) -> Any:
    """e to the power of the value."""
    return np.exp(x)


@exp.gradient
def _(out: Any, dout: Any) -> Any:
    return dout * out


@elementwise(floating=True)
def log(x: Any) -> Any:
    """The natural logarithm."""
    return np.log(x)


@log.gradient
def _(x: Any, dout: Any) -> Any:
    return dout / x


@elementwise(floating=True)
def log1p(x: Any) -> Any:
    """The natural logarithm of 1 + x, exact for small x."""
    return np.log1p(x)


@log1p.gradient
def _(x: Any, dout: Any) -> Any:
    return dout / (x + 1.0)


@elementwise(floating=True)
def sin(x: Any) -> Any:
    """The sine."""
    return np.sin(x)


@sin.gradient
def _(x: Any, dout: Any) -> Any:
    return dout * cos(x)


@elementwise(floating=True)
def cos(x: Any) -> Any:
    """The cosine."""
    return np.cos(x)


@cos.gradient
def _(x: Any, dout: Any) -> Any:
    return -dout * sin(x)


@elementwise(floating=True)
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return np.tanh(x)


@tanh.gradient
def _(out: Any, dout: Any) -> Any:
    return dout * (1.0 - out * out)


@elementwise(floating=True)
def sqrt(x: Any) -> Any:
    """The square root."""
    return np.sqrt(x)


@sqrt.gradient
def _(out: Any, dout: Any) -> Any:
    return dout * 0.5 / out


@elementwise(floating=True)
def rsqrt(x: Any) -> Any:
    """One over the square root."""
    return x**-0.5


@rsqrt.gradient
def _(x: Any, out: Any, dout: Any) -> Any:
    return dout * -0.5 * out / x


@elementwise
def square(x: Any) -> Any:
    """The value times itself."""
    return x * x


@square.gradient
def _(x: Any, dout: Any) -> Any:
    return dout * (x + x)


@elementwise(floating=True)
def reciprocal(x: Any) -> Any:
    """One over the value."""
    return 1.0 / x


@reciprocal.gradient
def _(out: Any, dout: Any) -> Any:
    return -dout * out * out


@elementwise
def abs(x: Any) -> Any:
    """The value without its sign; at zero the gradient is zero."""
    return np.abs(x)


@abs.gradient
def _(x: Any, dout: Any) -> Any:
    return dout * sign(x)


@elementwise(numbers=True)
def sign(x: Any) -> Any:
    """-1, 0 or 1."""
    return np.sign(x)


@elementwise(floating=True)
def floor(x: Any) -> Any:
    """The largest whole number that is not above the value."""
    return np.floor(x)


@elementwise(floating=True)
def ceil(x: Any) -> Any:
    """The smallest whole number that is not below the value."""
    return np.ceil(x)


@elementwise(floating=True)
def round(x: Any) -> Any:
    """The nearest whole number; halves go to the even one."""
    return np.rint(x)


@sign.gradient
@floor.gradient
@ceil.gradient
@round.gradient
def _(dout: Any) -> Any:
    return zeros_like(dout)


def _clip_one(x: Any, min: Any, max: Any) -> Any:
    if min is not None and max is not None and min > max:
        return max
    if min is not None and x < min:
        return min
    if max is not None and x > max:
        return max
    return x


@elementwise(scalar=_clip_one, numbers=True)
def clip(x: Any, *, min: float | None = None, max: float | None = None) -> Any:
    """The value kept between `min` and `max`; outside, the gradient is zero."""
    low, high = (None if bound is None else x.dtype.type(bound) for bound in (min, max))
    return np.clip(x, low, high)


@clip.gradient
def _(x: Any, out: Any, dout: Any) -> Any:
    return dout * (x == out)
