"""Methods of Tensors and Variables: Python's operators, indexing, and operators that are declared as methods."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.definition import REGISTRY, OpDef
from app.ops.dtype import DTypeLike, canonical
from app.ops.indexing import ROWS, index_items, take_items
from app.ops.public import PUBLIC
from app.ops.spec import UNKNOWN
from app.ops.values import Applied, Operand, Setting, Value

_UFUNCS = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "greater": "greater_than",
    "invert": "bitwise_not",
    "less": "less_than",
    "power": "pow",
    "rint": "round",
}
"""Operators by their NumPy names, if these differ."""


def _operator_of(ufunc: np.ufunc) -> OpDef | None:
    """The operator that computes the same as a function of NumPy or SciPy; None for any other function.

    A user's function, such as one by `numba.vectorize`, may have the name of an operator and compute something else, so
    the name alone says nothing.
    """
    name = ufunc.__name__
    if not any(getattr(sys.modules.get(module), name, None) is ufunc for module in ("numpy", "scipy.special")):
        return None
    operator = REGISTRY.get(_UFUNCS.get(name, name))
    return operator if operator is not None and len(operator.inputs) == ufunc.nin else None


def _shown(ufunc: np.ufunc) -> str:
    return f"np.{ufunc.__name__}" if getattr(np, ufunc.__name__, None) is ufunc else str(ufunc.__name__)


def _binary(name: str, swapped: bool = False) -> Callable[[Any, Any], Applied]:
    operator = REGISTRY[name]

    def method(self: Value, other: Operand) -> Applied:
        if other is None or isinstance(other, str):
            return NotImplemented
        return self.apply_operator(operator, (other, self) if swapped else (self, other), operator.attributes)

    return method


def _unary(name: str) -> Callable[[Any], Applied]:
    operator = REGISTRY[name]

    def method(self: Value) -> Applied:
        return self.apply_operator(operator, (self,), operator.attributes)

    return method


class ValueMethods:
    """The base of Tensor and Variable. Everything is done by operators, so it works in both modes."""

    __slots__ = ()
    __array_priority__ = 100.0  # operators of a value take precedence over those of an array on the left
    shape: Any
    dtype: Any
    apply_operator: Callable[..., Applied]

    __add__, __radd__ = _binary("add"), _binary("add", swapped=True)
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", swapped=True)
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", swapped=True)
    __truediv__, __rtruediv__ = _binary("divide"), _binary("divide", swapped=True)
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _binary("floor_divide", swapped=True)
    __mod__, __rmod__ = _binary("remainder"), _binary("remainder", swapped=True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", swapped=True)
    __matmul__, __rmatmul__ = _binary("matmul"), _binary("matmul", swapped=True)
    __and__, __or__ = _binary("bitwise_and"), _binary("bitwise_or")
    __rand__, __ror__ = _binary("bitwise_and", swapped=True), _binary("bitwise_or", swapped=True)
    __xor__, __rxor__ = _binary("bitwise_xor"), _binary("bitwise_xor", swapped=True)
    __invert__ = _unary("bitwise_not")
    __lt__, __le__ = _binary("less_than"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater_than"), _binary("greater_equal")
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")
    __neg__, __abs__ = _unary("negative"), _unary("abs")
    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Operand, **settings: object) -> Applied:
        """Apply the operator that corresponds to a NumPy function, so that gradients flow through it.

        If there is none, values with `stop_gradient=True` are converted to arrays.
        """
        operator = _operator_of(ufunc)
        if method != "__call__" or settings or operator is None:
            values = [v for v in inputs if isinstance(v, ValueMethods)]
            if all(hasattr(v, "__array__") and getattr(v, "stop_gradient", False) for v in values):
                arrays = [np.asarray(v) if isinstance(v, ValueMethods) else v for v in inputs]
                return getattr(ufunc, method)(*arrays, **settings)
            raise OperatorError(
                f"{_shown(ufunc)} does not work on a {type(self).__name__}, as no operator corresponds to it: "
                "use x.numpy() of a Tensor, or define an operator with opsmith.custom_op"
            )
        return operator(*inputs)

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("a scalar has no length")
        if self.shape[0] == UNKNOWN:
            raise ShapeError("the length is not known before the Program runs")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Applied]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: object) -> Applied:
        arrays, items = index_items(index)
        if items == ROWS and canonical(arrays[0].dtype) != "bool":
            return REGISTRY["gather"](self, arrays[0])
        return take_items([self, *arrays], items=items)

    # Other names of Paddle's tensors

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Applied:  # noqa: N802 - NumPy's and Paddle's name
        return REGISTRY["transpose"](self)

    def astype(self, dtype: DTypeLike) -> Applied:
        """Cast to another element type."""
        return self.apply_operator(REGISTRY["cast"], (self,), {"dtype": canonical(dtype)})


def _method(name: str, function: Callable[..., Applied]) -> Callable[..., Applied]:
    def method(self: Value, *args: Operand | Setting, **kwargs: Operand | Setting) -> Applied:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, function.__doc__
    return method


for _name, _entry in PUBLIC.items():
    if _entry.method:
        setattr(ValueMethods, _name, _method(_name, _entry.function))
