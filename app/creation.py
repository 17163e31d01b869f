"""Values made from nothing: constants, ranges and random numbers, eagerly or, in static mode, as operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.graph.defaults import default_main_program, in_dynamic_mode
from app.graph.program import constant
from app.ops import creation as ops
from app.ops.definition import OpDef, apply, plain
from app.ops.dtype import canonical, get_default_dtype
from app.tensor import Tensor


def _make(definition: OpDef, **attributes: Any) -> Any:
    attributes = {**definition.attributes, **{k: plain(v) for k, v in attributes.items()}}
    if in_dynamic_mode():
        return Tensor(np.asarray(apply(definition, [], attributes)))
    program = default_main_program()
    if "seed" in attributes:
        attributes["seed"] = program.next_seed()
    return program.current_block().append_op(definition, [], attributes)[0]


def _from_array(array: np.ndarray) -> Any:
    return Tensor(array) if in_dynamic_mode() else constant(default_main_program().current_block(), array)


def _shape(shape: Any) -> list[int]:
    return [int(shape)] if isinstance(shape, (int, np.integer)) else [int(s) for s in shape]


def full(shape: Any, fill_value: float, dtype: Any = None, name: str | None = None) -> Any:
    """The same number everywhere."""
    if dtype is None:
        dtype = get_default_dtype() if isinstance(fill_value, float) else canonical(type(fill_value))
    return _make(ops.fill_constant, shape=_shape(shape), value=fill_value, dtype=canonical(dtype))


def zeros(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Zeros."""
    return full(shape, 0.0, dtype or get_default_dtype())


def ones(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Ones."""
    return full(shape, 1.0, dtype or get_default_dtype())


def arange(start: float = 0, end: float | None = None, step: float = 1, dtype: Any = None) -> Any:
    """The numbers from `start` up to, and without, `end`."""
    start, end = (0, start) if end is None else (start, end)
    array = np.arange(start, end, step)
    kind = get_default_dtype() if array.dtype.kind == "f" else "int64"
    return _from_array(array.astype(canonical(dtype or kind)))


def linspace(start: float, stop: float, num: int, dtype: Any = None, name: str | None = None) -> Any:
    """`num` numbers at equal distances, the ends included."""
    return _from_array(np.linspace(start, stop, int(num), dtype=canonical(dtype or get_default_dtype())))


def eye(num_rows: int, num_columns: int | None = None, dtype: Any = None) -> Any:
    """The unit matrix."""
    return _from_array(np.eye(num_rows, num_columns, dtype=canonical(dtype or get_default_dtype())))


def uniform(shape: Any, dtype: Any = None, min: float = -1.0, max: float = 1.0) -> Any:
    """Random numbers, each equally likely between `min` and `max`."""
    return _make(
        ops.uniform_random, shape=_shape(shape), dtype=canonical(dtype or get_default_dtype()), min=min, max=max
    )


def rand(shape: Any, dtype: Any = None) -> Any:
    """Random numbers, each equally likely between 0 and 1."""
    return uniform(shape, dtype, 0.0, 1.0)


def normal(mean: float = 0.0, std: float = 1.0, shape: Any = (1,), dtype: Any = None) -> Any:
    """Random numbers of the normal distribution."""
    return _make(
        ops.gaussian_random, shape=_shape(shape), dtype=canonical(dtype or get_default_dtype()), mean=mean, std=std
    )


def randn(shape: Sequence[int], dtype: Any = None) -> Any:
    """Random numbers of the standard normal distribution."""
    return normal(0.0, 1.0, shape, dtype)


def randint(low: int, high: int | None = None, shape: Any = (1,), dtype: Any = None) -> Any:
    """Random whole numbers from `low` up to, and without, `high`; from 0 where only one is given."""
    low, high = (0, low) if high is None else (low, high)
    return _make(ops.integer_random, shape=_shape(shape), dtype=canonical(dtype or "int64"), low=low, high=high)
