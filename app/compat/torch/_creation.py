"""Functions that make Tensors from data, from sizes, and from random numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import app as _package
from app.compat.torch._tensor import Tensor, in_torch
from app.compat.torch._types import check_device, get_default_dtype, named, sizes
from app.errors import DtypeError
from app.tensor import Tensor as FrameworkTensor

app: Any = _package  # operators are created on import, invisible to a type checker


def tensor(data: Any, *, dtype: Any) -> Any:
    """A Tensor with a copy of the data."""
    result = app.to_tensor(data, dtype)
    if result._array.dtype.kind in "iu" and not isinstance(data, FrameworkTensor):
        numbers = np.asarray(data)
        if numbers.dtype.kind in "iu" and (numbers != result._array).any():
            raise DtypeError(f"torch.tensor: some of the numbers do not fit into {result.dtype}; give a wider dtype")
    return result


def from_numpy(array: np.ndarray) -> Any:
    """A Tensor that shares the memory of an array."""
    if not isinstance(array, np.ndarray):
        raise DtypeError(f"from_numpy takes a NumPy array, found {type(array).__name__}; use torch.tensor")
    named(array.dtype)  # an error if there is no such type
    return in_torch(FrameworkTensor(array))


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A Tensor of the data, which shares their memory if they are an array or a Tensor of that type."""
    check_device(device)
    shared = from_numpy(data) if isinstance(data, np.ndarray) else data
    return shared.to(dtype=dtype) if isinstance(shared, Tensor) else FUNCTIONS["tensor"](data, dtype=dtype)


def full(size: Any, fill_value: Any, *, dtype: Any) -> Any:
    """The same number everywhere."""
    number = fill_value.item() if hasattr(fill_value, "item") else fill_value
    return app.full(list(size), number, dtype or (get_default_dtype() if isinstance(number, float) else type(number)))


def randint(low: int, high: Any, size: Any = None, *, dtype: Any) -> Any:
    """Random integers from `low`, or 0, up to, not including, `high`."""
    low, high, size = (0, low, high) if size is None else (low, high, size)
    return app.randint(low, high, list(size), dtype)


def _creator(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a Tensor of `make(*args)`, with the settings that all of these functions have."""

    @wraps(make)
    def create(*args: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **settings: Any) -> Any:
        check_device(device)
        result = in_torch(make(*args, dtype=None if dtype is None else named(dtype), **settings))
        return result.requires_grad_() if requires_grad else result

    return create


def _of_sizes(make: Callable[..., Any]) -> Callable[..., Any]:
    return _creator(lambda *size, dtype: make(sizes(size), dtype or get_default_dtype()))


def _like(make: Callable[..., Any]) -> Callable[..., Any]:
    return _creator(lambda input, *value, dtype: make(list(input.shape), *value, dtype or input.dtype))


_SIZED = {"zeros": app.zeros, "ones": app.ones, "empty": app.zeros, "rand": app.rand, "randn": app.randn}
FUNCTIONS: dict[str, Any] = {
    **{name: _of_sizes(make) for name, make in _SIZED.items()},
    **{f"{name}_like": _like(make) for name, make in _SIZED.items()},
    "tensor": _creator(tensor),
    "as_tensor": as_tensor,
    "from_numpy": from_numpy,
    "full": _creator(full),
    "full_like": _like(app.full),
    "arange": _creator(lambda start, end=None, step=1, *, dtype: app.arange(start, end, step, dtype)),
    "linspace": _creator(lambda start, end, steps, *, dtype: app.linspace(start, end, steps, dtype)),
    "eye": _creator(lambda n, m=None, *, dtype: app.eye(n, m, dtype)),
    "randint": _creator(randint),
    "manual_seed": lambda seed: app.seed(int(seed)),
}
"""The functions of the module `torch` that make Tensors, and the seed of random numbers."""


def _of_same_type(name: str) -> Callable[..., Any]:
    return lambda self, *args, **settings: FUNCTIONS[name](*args, **{"dtype": self.dtype, **settings})


def _new(self: Any, *data: Any) -> Any:
    """A Tensor of the same type: of data, or with arbitrary elements, of the sizes given."""
    return METHODS["new_empty" if isinstance(data[0], int) else "new_tensor"](self, *data)


METHODS: dict[str, Any] = {
    "new": _new,
    **{f"new_{name}": _of_same_type(name) for name in ("empty", "full", "ones", "tensor", "zeros")},
}
"""The methods that make Tensors of the type of another."""
