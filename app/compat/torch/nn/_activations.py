"""The functions of `torch.nn.functional` that work on each element, by a table; `inplace=True` changes the Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.compat.torch._table import register, renamed
from app.nn import functional

TABLE = """
celu = celu(input, alpha)
elu = elu(input, alpha)
hardshrink = hardshrink(input, lambd:threshold)
hardsigmoid = hardsigmoid(input)
hardswish = hardswish(input)
hardtanh = hardtanh(input, min_val:min, max_val:max)
leaky_relu = leaky_relu(input, negative_slope)
logsigmoid = log_sigmoid(input)
mish = mish(input)
prelu = prelu(input, weight)
relu = relu(input)
relu6 = relu6(input)
selu = selu(input)
sigmoid = sigmoid(input)
silu = silu(input)
softplus = softplus(input, beta, threshold)
softshrink = softshrink(input, lambd:threshold)
softsign = softsign(input)
tanh = tanh(input)
tanhshrink = tanhshrink(input)
"""


def _changeable(function: Callable[..., Any]) -> Callable[..., Any]:
    def activation(input: Any, *args: Any, inplace: bool = False, **settings: Any) -> Any:
        result = function(input, *args, **settings)
        return input.become(result) if inplace else result

    activation.__name__, activation.__doc__ = function.__name__, function.__doc__
    return activation


ACTIVATIONS = {
    name: _changeable(renamed(name, target, functional))
    for name, _, target in (row.partition(" = ") for row in TABLE.strip().splitlines())
}
"""Every such function by name."""


def gelu(input: Any, approximate: str = "none") -> Any:
    """The value times the share of the normal distribution below it; `approximate="tanh"` computes it through tanh."""
    return functional.gelu(input, approximate == "tanh")


@register()
def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Exponentials that sum to one along an axis."""
    return functional.softmax(input if dtype is None else input.to(dtype), axis=_axis(input, dim))


@register()
def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The logarithm of softmax."""
    return functional.log_softmax(input if dtype is None else input.to(dtype), axis=_axis(input, dim))


def softmin(input: Any, dim: int | None = None) -> Any:
    """Softmax of the negative."""
    return softmax(-input, dim)


def _axis(input: Any, dim: int | None) -> int:
    """Where none is named, the first axis of a vector, of a cube and of no axes at all, else the second."""
    return dim if dim is not None else 0 if input.ndim in (0, 1, 3) else 1


def glu(input: Any, dim: int = -1) -> Any:
    """One half of an axis times the sigmoid of the other."""
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()
