"""Methods that fill a Tensor with random numbers, copy it, or convert it to the form of another."""

from __future__ import annotations

from typing import Any

import numpy as np

import app
from app.compat.torch._random import default_generator
from app.compat.torch._table import register


@register(function=False)
def uniform_(self: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with uniformly distributed numbers."""
    with (generator or default_generator).drawing():
        return self.become(app.uniform(list(self.shape), self.dtype, from_, to))


@register(function=False)
def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with normally distributed numbers."""
    with (generator or default_generator).drawing():
        return self.become(app.normal(mean, std, list(self.shape), self.dtype))


@register(function=False)
def random_(self: Any, from_: int = 0, to: int = 2**24) -> Any:
    """Fill with random integers."""
    return self.become(app.cast(app.randint(from_, to, list(self.shape)), dtype=self.dtype))


@register(function=False)
def contiguous(self: Any, memory_format: Any = None) -> Any:
    """The Tensor with its elements in row-major order in memory."""
    if self.is_contiguous():
        return self
    copied = self.clone()
    copied._array = np.ascontiguousarray(copied._array)
    return copied


@register()
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy, through which gradients flow."""
    return app.assign(input)


@register(method=False)
def detach(input: Any) -> Any:
    """The Tensor without its graph; it shares the memory."""
    return input.detach()


@register(function=False)
def type_as(self: Any, other: Any) -> Any:
    """The Tensor converted to another Tensor's element type."""
    return self.to(other)


@register("reshape_as", function=False)
def view_as(self: Any, other: Any) -> Any:
    """The elements in another Tensor's shape."""
    return self.reshape(other.shape)


@register(function=False)
def expand_as(self: Any, other: Any) -> Any:
    """The value repeated to another Tensor's shape."""
    return app.broadcast_to(self, list(other.shape))
