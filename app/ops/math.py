"""Powers, exponentials, logarithms and other elementwise functions of one value."""

from __future__ import annotations

import math

import numpy as np

from app.ops.definition import REGISTRY
from app.ops.elementwise import elementwise
from app.ops.public import public
from app.ops.rounding import sign
from app.ops.values import Applied, Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Operand, Results, Value


@public("neg", method=True, in_place=True)
@elementwise(numbers=True, onnx="Neg")
def negative(x: Array) -> Results:
    """Negative, elementwise: -x."""
    return -x


@negative.gradient
def _(dout: Value) -> Gradients:
    return -dout


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Exp")
def exp(x: Array) -> Results:
    """Exponential, elementwise."""
    return np.exp(x)


@exp.gradient
def _(out: Value, dout: Value) -> Gradients:
    return dout * out


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Log")
def log(x: Array) -> Results:
    """Natural logarithm, elementwise."""
    return np.log(x)


@log.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout / x


@public(method=True, in_place=True)
@elementwise(floating=True)
def log1p(x: Array) -> Results:
    """log(1 + x), elementwise; accurate for small x."""
    return np.log1p(x)


@log1p.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout / (x + 1.0)


@log1p.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue) -> OnnxResult:
    above = x + 1.0
    # the factor x / (above - 1) corrects the rounding of 1 + x
    near = onnx.Where(onnx.Equal(above, 1.0), x, onnx.Log(above) * x / (above - 1.0))
    return onnx.Where(onnx.Less(onnx.Abs(x), 0.5), near, onnx.Log(above))


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Sqrt")
def sqrt(x: Array) -> Results:
    """Square root, elementwise."""
    return np.sqrt(x)


@sqrt.gradient
def _(out: Value, dout: Value) -> Gradients:
    return dout * 0.5 / out


@public(method=True, in_place=True)
@elementwise(floating=True, onnx=lambda onnx, x: onnx.Reciprocal(onnx.Sqrt(x)))
def rsqrt(x: Array) -> Results:
    """Reciprocal of the square root, elementwise."""
    return x**-0.5


@rsqrt.gradient
def _(x: Value, out: Value, dout: Value) -> Gradients:
    return dout * -0.5 * out / x


@public(method=True, in_place=True)
@elementwise(onnx=lambda onnx, x: x * x)
def square(x: Array) -> Results:
    """Square, elementwise."""
    return x * x


@square.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * (x + x)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx="Reciprocal")
def reciprocal(x: Array) -> Results:
    """Reciprocal, elementwise: 1 / x."""
    return 1.0 / x


@reciprocal.gradient
def _(out: Value, dout: Value) -> Gradients:
    return -dout * out * out


@public(method=True, in_place=True)
@elementwise(onnx="Abs")
def abs_(x: Array) -> Results:
    """Absolute value, elementwise; the gradient at zero is zero."""
    return np.abs(x)


@abs_.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * sign(x)


@public(method=True, in_place=True)
@elementwise(floating=True, onnx=lambda onnx, x: onnx.Log(x) / math.log(2.0))
def log2(x: Array) -> Results:
    """Base-2 logarithm, elementwise."""
    return np.log2(x)


@log2.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout / (x * math.log(2.0))


@public(method=True, in_place=True)
@elementwise(floating=True, onnx=lambda onnx, x: onnx.Log(x) / math.log(10.0))
def log10(x: Array) -> Results:
    """Base-10 logarithm, elementwise."""
    return np.log10(x)


@log10.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout / (x * math.log(10.0))


@public(method=True, in_place=True)
@elementwise(floating=True)
def expm1(x: Array) -> Results:
    """exp(x) - 1, elementwise; accurate for small x."""
    return np.expm1(x)


@expm1.gradient
def _(out: Value, dout: Value) -> Gradients:
    return dout * (out + 1.0)


@expm1.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue) -> OnnxResult:
    half = onnx.Tanh(x * 0.5)
    return onnx.Where(onnx.Less(onnx.Abs(x), 0.5), half * 2.0 / (1.0 - half), onnx.Exp(x) - 1.0)


@public(method=True, in_place=True)
@elementwise(floating=True, scalar=lambda x: math.erf(x), onnx="Erf")
def erf(x: Array) -> Results:
    """Error function, elementwise."""
    from scipy import special  # imported here because importing SciPy takes 0.1 s

    return special.erf(x).astype(x.dtype, copy=False)


@erf.gradient
def _(x: Value, dout: Value) -> Gradients:
    return dout * (exp(-square(x)) * (2.0 / math.sqrt(math.pi)))


@public(method=True, in_place=True)
def scale(
    x: Value,
    scale: Operand = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Applied:
    """x * scale + bias, or (x + bias) * scale; `act` names an operator to apply to the result."""
    out = x * scale + bias if bias_after_scale else (x + bias) * scale
    return out if act is None else REGISTRY[act](out)


@public(method=True)
def stanh(x: Value, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Applied:
    """scale_b * tanh(scale_a * x), elementwise."""
    return REGISTRY["tanh"](x * scale_a) * scale_b


@public(method=True, in_place=True)
def logit(x: Value, eps: float | None = None, name: str | None = None) -> Applied:
    """log(x / (1 - x)), elementwise; with `eps`, x is clipped to the range from eps to 1 - eps first."""
    clipped = x if eps is None else REGISTRY["clip"](x, min=eps, max=1.0 - eps)
    return log(clipped / (1.0 - clipped))
