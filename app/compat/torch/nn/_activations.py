"""The activation functions of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from app.compat.table import table
from app.compat.torch._table import register
from app.nn import functional

ACTIVATIONS = table(
    functional,
    """
    celu = celu(input, alpha, inplace)
    elu = elu(input, alpha, inplace)
    hardshrink = hardshrink(input, lambd:threshold)
    hardsigmoid = hardsigmoid(input, inplace)
    hardswish = hardswish(input, inplace)
    hardtanh = hardtanh(input, min_val:min, max_val:max, inplace)
    leaky_relu = leaky_relu(input, negative_slope, inplace)
    logsigmoid = log_sigmoid(input)
    mish = mish(input, inplace)
    prelu = prelu(input, weight)
    relu = relu(input, inplace)
    relu6 = relu6(input, inplace)
    selu = selu(input, inplace)
    sigmoid = sigmoid(input)
    silu = silu(input, inplace)
    softplus = softplus(input, beta=1.0, threshold=20.0)
    softshrink = softshrink(input, lambd:threshold)
    softsign = softsign(input)
    tanh = tanh(input)
    tanhshrink = tanhshrink(input)
    glu = glu(input, dim:axis)
    """,
)
"""The activation functions that differ in the names of parameters only."""


def gelu(input: Any, approximate: str = "none") -> Any:
    """x times the cumulative distribution function of the normal distribution; `approximate` is "none" or "tanh"."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', found {approximate!r}")
    return functional.gelu(input, approximate == "tanh")


@register(function=False)
def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Exponentials, normalised to sum 1 along an axis."""
    return functional.softmax(input, _axis(input, dim), dtype)


@register(function=False)
def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The logarithm of softmax."""
    return functional.log_softmax(input, _axis(input, dim), dtype)


def softmin(input: Any, dim: int | None = None) -> Any:
    """Softmax of the negative."""
    return softmax(-input, dim)


def _axis(input: Any, dim: int | None) -> int:
    """The axis that PyTorch chooses where none is given."""
    return dim if dim is not None else 0 if input.ndim in (0, 1, 3) else 1


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """Elements above a threshold, and `value` in place of the others."""
    result = functional.thresholded_relu(input, threshold, value)
    return input.become(result) if inplace else result
