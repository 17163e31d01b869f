"""Tensors from data, from sizes, and from random numbers."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

import app
from app.compat.table import put_into
from app.compat.torch._device import check_device
from app.compat.torch._dtype import get_default_dtype, named
from app.compat.torch._random import default_generator
from app.compat.torch._size import sizes
from app.compat.torch._table import METHODS
from app.compat.torch._tensor import KINDS, Tensor, TensorMethods, in_torch
from app.errors import DtypeError
from app.ops.dtype import canonical
from app.tensor import Tensor as FrameworkTensor
from app.tensor.modes import modes

CREATORS: dict[str, Callable[..., Any]] = {}
"""The functions of the module `torch` that make Tensors."""


def creator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function the keyword arguments that all of these have, and turn its result into a Tensor."""

    def create(
        *args: Any, requires_grad: bool = False, device: Any = None, generator: Any = None, **settings: Any
    ) -> Any:
        check_device(device)
        for ignored in ("layout", "memory_format", "pin_memory"):
            settings.pop(ignored, None)
        out = settings.pop("out", None)
        if settings.get("dtype") is not None:
            settings["dtype"] = named(settings["dtype"])
        with (generator or default_generator).drawing():
            made = function(*args, **settings)
        result = in_torch(made)
        if out is not None:
            return put_into(create.__name__, out, result)
        return result.requires_grad_() if requires_grad else result

    own = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    shared = {"generator": None, "out": None, "device": None, "requires_grad": False}
    more = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in shared.items()]
    create.__name__, create.__doc__ = function.__name__, function.__doc__
    create.__signature__ = Signature([*own, *more])  # type: ignore[attr-defined]
    CREATORS[function.__name__.rstrip("_")] = create
    return create


def _of_kind(name: str) -> Callable[..., Any]:
    """`torch.FloatTensor(...)` and similar: data are converted to that type, and sizes give an empty Tensor."""

    def create(*data: Any) -> Any:
        if not data or isinstance(data[0], int):
            return CREATORS["empty"](*data or (0,), dtype=name)
        return tensor(data[0], dtype=name)

    return create


CREATORS.update({kind: _of_kind(name) for name, kind in KINDS.items()})

# From data


def _number_type(kinds: set[Any]) -> Any:
    """The common type of what an array or a list contains: Python floats have the default type, integers int64."""
    known = {float: get_default_dtype(), int: "int64", bool: "bool"}
    found = [np.dtype(known.get(kind, kind)) for kind in kinds or {float}]
    return np.result_type(*([kind for kind in found if kind.kind == "f"] or found))


@creator
def tensor(data: Any, *, dtype: Any = None) -> Any:
    """A Tensor with a copy of the data."""
    if modes().tracer is not None:
        return app.to_tensor(data, dtype)
    kinds: set[Any] = set()
    array = np.array(_plain(data, kinds))
    if array.dtype.kind not in "biuf":
        raise DtypeError(f"torch.tensor takes numbers, found {type(data).__name__} of {array.dtype}")
    wanted = np.dtype(canonical(dtype or _number_type(kinds)))
    if wanted.kind in "iu" and not hasattr(data, "dtype"):
        _check_range(array, wanted)
    return array.astype(wanted, copy=False)


_NUMBERS = frozenset({float, int, bool})
_KINDS = {"f": float, "i": int, "u": int, "b": bool}


def _plain(data: Any, kinds: set[Any], inside: bool = False) -> Any:
    """Data without Tensors, as NumPy takes them; adds the types of their numbers to a set."""
    if type(data) in _NUMBERS:
        kinds.add(type(data))
        return data
    if isinstance(data, (list, tuple, range)):
        return [_plain(item, kinds, True) for item in data]
    # without a type of its own: an enumeration, an array.array, a deque
    kinds.add(data.dtype if hasattr(data, "dtype") else _KINDS.get(np.asarray(data).dtype.kind, object))
    if not isinstance(data, FrameworkTensor):
        return data
    if inside and data._array.size != 1:
        raise DtypeError(f"torch.tensor: a list has a Tensor of shape {list(data.shape)} in it; use torch.stack or cat")
    return data.item() if inside else data._array


def _check_range(array: np.ndarray, wanted: np.dtype[Any]) -> None:
    """Refuse numbers that an integer type cannot hold; a negative one is counted from the end of an unsigned type."""
    most = np.iinfo(wanted).max
    least = np.iinfo(wanted).min or -most
    below = array < float(most + 1) if array.dtype.kind == "f" else array <= most  # the largest int64 is no float
    wrong = ~((array >= least) & below)
    if wrong.any():
        raise DtypeError(f"torch.tensor: {array[wrong][0]} cannot be stored in {wanted}; give a wider dtype")


@creator
def _shared(data: Any, dtype: Any = None) -> Any:
    array = data._array if isinstance(data, FrameworkTensor) else data
    if not isinstance(array, np.ndarray):
        return tensor(data, dtype=dtype)
    return array if dtype is None else array.astype(canonical(dtype), copy=False)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A Tensor of the data, sharing its memory where the type allows it; a Tensor itself where it has that type."""
    if isinstance(data, TensorMethods):
        return data.to(dtype=dtype, device=device)
    return _shared(data, dtype=dtype, device=device)


CREATORS["as_tensor"] = CREATORS["asarray"] = as_tensor


def from_numpy(array: Any) -> Any:
    """A Tensor that shares the memory of an array."""
    if not isinstance(array, np.ndarray):
        raise DtypeError(f"from_numpy takes a NumPy array, found {type(array).__name__}; use torch.tensor")
    canonical(array.dtype)
    return Tensor.result_class(array)


CREATORS["from_numpy"] = from_numpy


# Of a shape


def _of_shape(name: str, make: Callable[..., Any]) -> None:
    def function(*size: Any, dtype: Any = None, **settings: Any) -> Any:
        shape = sizes(size if size else (settings.pop("size"),))
        return make(shape, canonical(dtype or get_default_dtype()), **settings)

    function.__name__, function.__doc__ = name, f"`{name}` of the sizes given."
    creator(function)


_of_shape("zeros", app.zeros)
_of_shape("ones", app.ones)
_of_shape("empty", app.zeros)
_of_shape("rand", app.rand)
_of_shape("randn", app.randn)


@creator
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    """The same number everywhere."""
    number = _number(fill_value)
    kind = get_default_dtype() if isinstance(number, float) else canonical(type(number))
    return app.full(list(size), number, dtype or kind)


@creator
def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """The numbers from `start` up to, not including, `end`."""
    return app.arange(_number(start), _number(end), _number(step), dtype)


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


@creator
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None) -> Any:
    """Evenly spaced numbers, including both ends."""
    return app.linspace(_number(start), _number(end), steps, dtype)


@creator
def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: Any = None) -> Any:
    """Powers of `base` with evenly spaced exponents."""
    return app.cast(app.pow(base, app.linspace(start, end, steps, "float64")), dtype or get_default_dtype())


@creator
def eye(n: int, m: int | None = None, *, dtype: Any = None) -> Any:
    """The identity matrix."""
    return app.eye(n, m, dtype)


@creator
def randint(low: int = 0, high: Any = None, size: Any = None, *, dtype: Any = None) -> Any:
    """Random integers from `low` (by default 0) up to, not including, `high`."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    return app.randint(low, high, list(size), dtype)


@creator
def randperm(n: int, *, dtype: Any = None) -> Any:
    """A random permutation of the integers below `n`."""
    return app.randperm(n, dtype or "int64")


@creator
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, dtype: Any = None) -> Any:
    """Normally distributed numbers."""
    if size is not None:
        return app.normal(mean, std, list(size), dtype)
    like = mean if hasattr(mean, "dtype") else std
    return app.randn(list(like.shape), canonical(like.dtype)) * std + mean


@creator
def bernoulli(input: Any) -> Any:
    """1 with the probability that each element gives, else 0."""
    return app.bernoulli(input)


@creator
def multinomial(input: Any, num_samples: int, replacement: bool = False) -> Any:
    """Indices drawn with probabilities in proportion to the input."""
    return app.multinomial(input, num_samples, replacement)


# Like another Tensor


def _like(name: str, make: Callable[..., Any]) -> None:
    def function(input: Any, *args: Any, dtype: Any = None, **settings: Any) -> Any:
        return make(list(input.shape), *args, canonical(dtype or input.dtype), **settings)

    function.__name__, function.__doc__ = f"{name}_like", f"`{name}` in the shape of another Tensor."
    creator(function)


_like("zeros", app.zeros)
_like("ones", app.ones)
_like("empty", app.zeros)
_like("full", app.full)
_like("rand", app.rand)
_like("randn", app.randn)


@creator
def randint_like(input: Any, low: int, high: Any = None, *, dtype: Any = None) -> Any:
    """Random integers in the shape of another Tensor."""
    low, high = (0, low) if high is None else (low, high)
    return app.randint(low, high, list(input.shape), "int64").astype(dtype or input.dtype)


@creator
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Any:
    """The row and column indices of the lower triangle of a matrix, in two rows."""
    return app.tril_indices(row, col, offset, dtype or "int64")


@creator
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Any:
    """The row and column indices of the upper triangle of a matrix, in two rows."""
    return app.triu_indices(row, col, offset, dtype or "int64")


def _new(name: str) -> Any:
    def method(self: Any, *args: Any, dtype: Any = None, **settings: Any) -> Any:
        return CREATORS[name](*args, dtype=dtype or named(self.dtype), **settings)

    return method


for _name in ("zeros", "ones", "empty", "full", "tensor"):
    METHODS[f"new_{_name}"] = _new(_name)
METHODS["new"] = lambda self, *data: _of_kind(self._array.dtype.name)(*data)
