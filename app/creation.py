"""Creating values: constants, ranges and random numbers. In static mode they are operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.graph.build import constant
from app.graph.defaults import default_main_program, in_dynamic_mode
from app.graph.variable import Variable
from app.ops import creation as ops
from app.ops import drawing
from app.ops.definition import REGISTRY, OpDef, apply, as_immutable
from app.ops.dtype import canonical, get_default_dtype
from app.ops.public import public
from app.ops.shaping import sizes_of
from app.tensor import Tensor, to_tensor
from app.tensor.modes import modes


def _make(definition: OpDef, **attributes: Any) -> Any:
    attributes = {**definition.attributes, **{k: as_immutable(v) for k, v in attributes.items()}}
    if in_dynamic_mode():
        return Tensor(np.asarray(apply(definition, [], attributes)))
    program = default_main_program()
    return program.current_block().append_op(definition, [], attributes)[0]


def _from_array(array: np.ndarray) -> Any:
    return Tensor(array) if in_dynamic_mode() else constant(default_main_program().current_block(), array)


def _shape(shape: Any) -> list[int]:
    return [int(shape)] if isinstance(shape, (int, np.integer)) else [int(s) for s in shape]


def full(shape: Any, fill_value: float, dtype: Any = None) -> Any:
    """A value filled with one number, by default of the default floating type, as in Paddle."""
    if dtype is None:
        dtype = "bool" if isinstance(fill_value, bool) else get_default_dtype()
    sizes, known_sizes = sizes_of(shape)
    if sizes is not None:
        return ops.fill_sizes(sizes, value=fill_value, dtype=canonical(dtype), known=known_sizes)
    return _make(ops.fill_constant, shape=_shape(known_sizes), value=fill_value, dtype=canonical(dtype))


def zeros(shape: Any, dtype: Any = None) -> Any:
    """A value filled with zeros."""
    return full(shape, 0.0, dtype or get_default_dtype())


def ones(shape: Any, dtype: Any = None) -> Any:
    """A value filled with ones."""
    return full(shape, 1.0, dtype or get_default_dtype())


def empty(shape: Any, dtype: Any = None) -> Any:
    """A value to be filled later. It is filled with zeros here."""
    return zeros(shape, dtype)


def arange(start: float = 0, end: float | None = None, step: float = 1, dtype: Any = None) -> Any:
    """Numbers from `start` (inclusive) to `end` (exclusive), in steps of `step`."""
    start, end = (0, start) if end is None else (start, end)
    array = np.arange(start, end, step)
    kind = get_default_dtype() if array.dtype.kind == "f" else "int64"
    return _from_array(array.astype(canonical(dtype or kind)))


def linspace(start: float, stop: float, num: int, dtype: Any = None) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`, both included."""
    array = np.linspace(float(start), float(stop), int(num))
    return _from_array(array.astype(canonical(dtype or get_default_dtype())))


def eye(num_rows: int, num_columns: int | None = None, dtype: Any = None) -> Any:
    """The identity matrix."""
    return _from_array(np.eye(num_rows, num_columns, dtype=canonical(dtype or get_default_dtype())))


def clone(x: Any) -> Any:
    """A copy, through which gradients flow."""
    return REGISTRY["assign"](x)


def uniform(shape: Any, dtype: Any = None, min: float = -1.0, max: float = 1.0, seed: int = 0) -> Any:
    """Uniformly distributed random numbers between `min` and `max`."""
    return _make(
        drawing.uniform_random,
        shape=_shape(shape),
        dtype=canonical(dtype or get_default_dtype()),
        min=float(min),
        max=float(max),
        seed=(int(seed), 0) if seed else None,
    )


def rand(shape: Any, dtype: Any = None) -> Any:
    """Uniformly distributed random numbers between 0 and 1."""
    return uniform(shape, dtype, 0.0, 1.0)


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None, dtype: Any = None, seed: int = 0) -> Any:
    """Normally distributed random numbers. Without `shape`, they have the shape of `mean` and `std`."""
    if hasattr(mean, "dtype") or hasattr(std, "dtype"):
        shape = (mean + std).shape if shape is None else shape
        return standard_normal(shape, dtype) * std + mean
    kind = canonical(dtype or get_default_dtype())
    shape = (1,) if shape is None else shape
    return _make(
        drawing.gaussian_random,
        shape=_shape(shape),
        dtype=kind,
        mean=float(mean),
        std=float(std),
        seed=(int(seed), 0) if seed else None,
    )


def standard_normal(shape: Any, dtype: Any = None) -> Any:
    """Normally distributed random numbers with mean 0 and standard deviation 1."""
    return normal(0.0, 1.0, shape, dtype=dtype)


randn = standard_normal


def randint(low: int = 0, high: int | None = None, shape: Any = (1,), dtype: Any = None) -> Any:
    """Random integers from `low` (inclusive) to `high` (exclusive), or from 0 to `low` if `high` is not given."""
    low, high = (0, low) if high is None else (low, high)
    return _make(drawing.integer_random, shape=_shape(shape), dtype=canonical(dtype or "int64"), low=low, high=high)


@public()
def assign(x: Any, output: Any = None) -> Any:
    """A copy of a value, a number, a list or an array. If `output` is given, it is overwritten with the copy."""
    value = x if is_tensor(x) else to_tensor(x)
    if value is not x and modes().tracer is None:
        value = _from_array(value._array) if output is None else value._array
    copied = apply(ops.assign, [value], {}, None if output is None else [output])
    return copied if output is None else output


def is_tensor(x: Any) -> bool:
    """Whether `x` is a Tensor or a Variable."""
    return isinstance(x, (Tensor, Variable))
