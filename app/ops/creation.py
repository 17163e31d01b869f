"""Operators that make values: constants, and values that are like another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.definition import operator, same_as_input
from app.ops.form import Constant, Elementwise
from app.ops.public import public
from app.ops.spec import Spec
from app.ops.values import Applied, Array, Gradients, OnnxNodes, OnnxResult, OnnxValue, Operand, Results, Value


def as_declared(*, shape: tuple[int, ...], dtype: str, **attributes: Any) -> Spec:
    """Inference for an operator whose attributes say the shape and the type."""
    return Spec(tuple(shape), dtype)


@operator(as_declared, form=Constant(lambda attributes: attributes["value"]))
def fill_constant(*, shape: Any, value: float, dtype: str = "float32") -> Results:
    """A new array with the same number everywhere."""
    return np.full(shape, value, dtype)


@fill_constant.in_onnx
def _(onnx: OnnxNodes, shape: Any, value: float, dtype: str) -> OnnxResult:
    return onnx.filled(list(shape), value, dtype) if shape else onnx.constant(value, dtype)


@operator(
    lambda sizes, *, value, dtype, known: Spec(known, dtype),
    onnx=lambda onnx, sizes, value, dtype, known: onnx.filled(sizes, value, dtype),
)
def fill_sizes(sizes: Array, *, value: float, dtype: str, known: tuple[int, ...]) -> Results:
    """The same number everywhere, in a shape that is a value; `known` has the certain sizes, and -1 for others."""
    return np.full(tuple(sizes.tolist()), value, dtype)


@operator(
    lambda *, values, dtype, shape: Spec(shape, dtype),
    onnx=lambda onnx, values, dtype, shape: onnx.constant(np.reshape(np.asarray(values, dtype), shape)),
)
def assign_value(*, values: Any, dtype: str, shape: Any) -> Results:
    """A new array with the values listed in row order."""
    return np.array(values, dtype).reshape(shape)


@public()
@operator(
    lambda x, *, fill_value, dtype=None: Spec(x.shape, dtype or x.dtype),
    form=Constant(lambda attributes: attributes["fill_value"]),
)
def full_like(x: Array, *, fill_value: float, dtype: str | None = None) -> Results:
    """A new array with the shape of another and the same number everywhere."""
    return np.full_like(x, fill_value, dtype)


@full_like.in_onnx
def _(onnx: OnnxNodes, x: OnnxValue, fill_value: float, dtype: str | None) -> OnnxResult:
    return onnx.filled(onnx.Shape(x), fill_value, dtype or x.dtype)


@public()
def zeros_like(x: Operand, dtype: Any = None, name: str | None = None) -> Applied:
    """Zeros with the shape of another value."""
    return full_like(x, fill_value=0, dtype=dtype)


@public()
def ones_like(x: Operand, dtype: Any = None, name: str | None = None) -> Applied:
    """Ones with the shape of another value."""
    return full_like(x, fill_value=1, dtype=dtype)


@public()
def empty_like(x: Value, dtype: Any = None, name: str | None = None) -> Applied:
    """A value with the shape of another; what it holds at first says nothing, and is zeros here."""
    return zeros_like(x, dtype)


@public(name="shape")
@operator(lambda x: Spec((len(x.shape),), "int64"), onnx="Shape")
def shape_of(x: Array) -> Results:
    """The sizes of the axes of a value, as a value."""
    return np.array(x.shape, np.int64)


@public(name="numel")
@operator(lambda x: Spec((), "int64"), onnx="Size")
def number_of_elements(x: Array) -> Results:
    """How many elements a value has, as a value."""
    return np.array(x.size, np.int64)


@public()
def rank(input: Value) -> Applied:
    """How many axes a value has, as a value."""
    return number_of_elements(shape_of(input))


@public()
@operator(same_as_input, form=Elementwise(lambda x: x, settings=False), onnx="Identity")
def assign(x: Array) -> Results:
    """A copy."""
    return np.copy(x)


@assign.gradient
def _(dout: Value) -> Gradients:
    return dout
