"""Elementwise functions. Each is also a method; a method that ends in `_` changes the Tensor in place."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

import app
from app.compat.torch._table import FUNCTIONS, METHODS, register, rows
from app.errors import OperatorError
from app.ops.dtype import canonical, is_float
from app.ops.elementwise import result_type

rows(
    """
    abs absolute = abs(input)
    acos arccos = acos(input)
    acosh arccosh = acosh(input)
    asin arcsin = asin(input)
    asinh arcsinh = asinh(input)
    atan arctan = atan(input)
    atan2 arctan2 = atan2(input, other)
    atanh arctanh = atanh(input)
    bitwise_and = bitwise_and(input, other)
    bitwise_not = bitwise_not(input)
    bitwise_or = bitwise_or(input, other)
    bitwise_xor = bitwise_xor(input, other)
    ceil = ceil(input)
    cos = cos(input)
    cosh = cosh(input)
    deg2rad = deg2rad(input)
    erf = erf(input)
    exp = exp(input)
    expm1 = expm1(input)
    floor = floor(input)
    floor_divide = floor_divide(input, other)
    frac = frac(input)
    lerp = lerp(input, end:y, weight)
    log = log(input)
    log10 = log10(input)
    log1p = log1p(input)
    log2 = log2(input)
    logical_and = logical_and(input, other)
    logical_not = logical_not(input)
    logical_or = logical_or(input, other)
    logical_xor = logical_xor(input, other)
    multiply mul = multiply(input, other)
    nan_to_num = nan_to_num(input, nan, posinf, neginf)
    neg negative = negative(input)
    pow = pow(input, exponent)
    rad2deg = rad2deg(input)
    reciprocal = reciprocal(input)
    relu = relu(input)
    remainder = remainder(input, other)
    rsqrt = rsqrt(input)
    sigmoid = sigmoid(input)
    sign sgn = sign(input)
    sin = sin(input)
    sinh = sinh(input)
    sqrt = sqrt(input)
    square = square(input)
    tan = tan(input)
    tanh = tanh(input)
    trunc fix = trunc(input)
    """,
    in_place=True,
)


def _with_floats(function: Any) -> Any:
    """The function of values in the type that they have in common with bounds that are floats; it would round those."""

    @wraps(function)
    def clamp(input: Any, *args: Any, **settings: Any) -> Any:
        common = result_type([input, *(bound for bound in (*args, *settings.values()) if bound is not None)])
        if is_float(common) and common != input.dtype:
            input = app.cast(input, dtype=common)
        return function(input, *args, **settings)

    return clamp


rows("clamp clip = clip(input, min, max)", check=_with_floats, in_place=True)

rows(
    """
    eq = equal(input, other)
    fmax = fmax(input, other:y)
    fmin = fmin(input, other:y)
    ge greater_equal = greater_equal(input, other)
    gt greater = greater_than(input, other)
    hypot = hypot(input, other:y)
    logaddexp = logaddexp(input, other:y)
    logit = logit(input, eps)
    isclose = isclose(input, other:y, rtol, atol, equal_nan)
    isfinite = isfinite(input)
    isinf = isinf(input)
    isnan = isnan(input)
    le less_equal = less_equal(input, other)
    lt less = less_than(input, other)
    maximum = maximum(input, other)
    minimum = minimum(input, other)
    ne not_equal = not_equal(input, other)
    """
)


@register(in_place=True)
def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """`input + alpha * other`."""
    return app.add(input, other if alpha == 1 else app.multiply(other, alpha))


@register("subtract", in_place=True)
def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """`input - alpha * other`."""
    return app.subtract(input, other if alpha == 1 else app.multiply(other, alpha))


@register("divide", "true_divide", in_place=True)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """`input / other`, rounded down or toward zero where `rounding_mode` is "floor" or "trunc"."""
    if rounding_mode not in (None, "floor", "trunc"):
        raise OperatorError(f'div: rounding_mode is None, "floor" or "trunc", found {rounding_mode!r}')
    if rounding_mode == "floor":
        return app.floor_divide(input, other)
    if rounding_mode is None:
        return app.divide(input, other)
    if is_float(result_type([input, other])):
        return app.trunc(app.divide(input, other))
    down = app.floor_divide(input, other)
    return down + app.cast((down < 0).logical_and(app.remainder(input, other) != 0), down.dtype)


@register(in_place=True)
def round(input: Any, *, decimals: int = 0) -> Any:
    """The nearest whole number, or the nearest with so many decimals; halves go to the even one."""
    return app.round(input) if not decimals else app.round(input * 10.0**decimals) / 10.0**decimals


@register(in_place=True)
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """`input + value * tensor1 * tensor2`."""
    product = app.multiply(tensor1, tensor2)
    return input + product * factor(value, product)


@register(in_place=True)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """`input + value * tensor1 / tensor2`."""
    return input + app.divide(tensor1, tensor2) * value


@register(in_place=True)
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """`value` where the mask is true, `input` elsewhere."""
    return app.where(mask, as_element(value, input), input)


def factor(number: Any, of: Any) -> Any:
    """A number that multiplies a Tensor; PyTorch cuts off the fraction of one that multiplies integers."""
    return number if is_float(of.dtype) else int(number)


def as_element(value: Any, like: Any) -> Any:
    """A Tensor or number in the element type of a Tensor, in which it is stored: 0.5 becomes the integer 0."""
    if hasattr(value, "dtype"):
        return app.cast(value, like.dtype)
    return np.asarray(value).astype(canonical(like.dtype)).item()


METHODS["where"] = lambda self, condition, other: app.where(condition, self, other)
FUNCTIONS["where"] = app.where
