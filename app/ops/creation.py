"""Operators that create values: constants, and values with the shape of another value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.ops.definition import operator, same_as_input
from app.ops.dtype import DTypeLike
from app.ops.lowering import Constant, Elementwise
from app.ops.public import public
from app.ops.spec import Spec
from app.ops.values import Applied, Array, Number, Operand, Results, Setting, Value


def as_declared(*, shape: tuple[int, ...], dtype: str, **attributes: Setting) -> Spec:
    """Shape inference for an operator whose attributes are the shape and the type."""
    return Spec(tuple(shape), dtype)


@operator(as_declared, lowering=Constant(lambda attributes: attributes["value"]))
def fill_constant(*, shape: tuple[int, ...], value: float, dtype: str = "float32") -> Results:
    """A value of a given shape filled with one number."""
    return np.full(shape, value, dtype)


@fill_constant.in_onnx
def _(onnx: Any, shape: tuple[int, ...], value: float, dtype: str) -> Any:
    return onnx.filled(list(shape), value, dtype) if shape else onnx.constant(value, dtype)


@operator(
    lambda sizes, *, value, dtype, known: Spec(known, dtype),
    onnx=lambda onnx, sizes, value, dtype, known: onnx.filled(sizes, value, dtype),
)
def fill_sizes(sizes: Array, *, value: float, dtype: str, known: tuple[int, ...]) -> Results:
    """A value filled with one number, of a shape given as a value; `known` has the known sizes, and -1 for others."""
    return np.full(tuple(sizes.tolist()), value, dtype)


@operator(
    lambda *, values, dtype, shape: Spec(shape, dtype),
    onnx=lambda onnx, values, dtype, shape: onnx.constant(np.reshape(np.asarray(values, dtype), shape)),
)
def assign_value(*, values: Sequence[Number], dtype: str, shape: tuple[int, ...]) -> Results:
    """A value of a given shape from a list of numbers in row-major order."""
    return np.array(values, dtype).reshape(shape)


@public()
@operator(
    lambda x, *, fill_value, dtype=None: Spec(x.shape, dtype or x.dtype),
    lowering=Constant(lambda attributes: attributes["fill_value"]),
    onnx=lambda onnx, x, fill_value, dtype: onnx.filled(onnx.Shape(x), fill_value, dtype or x.dtype),
)
def full_like(x: Array, *, fill_value: float, dtype: str | None = None) -> Results:
    """A value with the shape of another, filled with one number."""
    return np.full_like(x, fill_value, dtype)


@public()
def zeros_like(x: Operand, dtype: DTypeLike | None = None) -> Applied:
    """Zeros with the shape and type of another value."""
    return full_like(x, fill_value=0, dtype=dtype)


@public()
def ones_like(x: Operand, dtype: DTypeLike | None = None) -> Applied:
    """Ones with the shape and type of another value."""
    return full_like(x, fill_value=1, dtype=dtype)


@public()
def empty_like(x: Value, dtype: DTypeLike | None = None) -> Applied:
    """A value with the shape and type of another and arbitrary elements (zeros here)."""
    return zeros_like(x, dtype)


@public()
@operator(lambda x: Spec((len(x.shape),), "int64"), onnx="Shape")
def shape(x: Array) -> Results:
    """Shape of a value, as a value."""
    return np.array(x.shape, np.int64)


@public()
@operator(lambda x: Spec((), "int64"), onnx="Size")
def numel(x: Array) -> Results:
    """Number of elements of a value, as a value."""
    return np.array(x.size, np.int64)


@public()
def rank(input: Value) -> Applied:
    """Number of axes of a value, as a value."""
    return numel(shape(input))


@public()
@operator(same_as_input, lowering=Elementwise(lambda x: x, settings=False), onnx="Identity", gradient=lambda dout: dout)
def assign(x: Array) -> Results:
    """Copy of a value."""
    return np.copy(x)
