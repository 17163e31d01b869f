"""What every value can do, Tensor and Variable alike: Python's operators, indexing, and each operator as a method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops.definition import REGISTRY, OpDef
from app.ops.shaping import plain_index
from app.ops.spec import UNKNOWN

_UFUNCS = {
    "absolute": "abs",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "bitwise_xor": "logical_xor",
    "greater": "greater_than",
    "invert": "logical_not",
    "less": "less_than",
    "power": "pow",
    "rint": "round",
}
"""NumPy's names for operators that have another one here."""


def _binary(name: str, swapped: bool = False) -> Any:
    operator = REGISTRY[name]

    def method(self: Any, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return NotImplemented
        return operator(other, self) if swapped else operator(self, other)

    return method


def _unary(name: str) -> Any:
    operator = REGISTRY[name]
    return lambda self: operator(self)


def _index_parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _is_array(index: Any) -> bool:
    return hasattr(index, "dtype") and not isinstance(index, np.generic)


class ValueMethods:
    """The base of Tensor and Variable. All that it does goes through operators, so it works in both modes."""

    __slots__ = ()
    __array_priority__ = 100.0  # an array on the left of an operator leaves the work to the value on the right
    shape: Any

    __add__, __radd__ = _binary("add"), _binary("add", swapped=True)
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", swapped=True)
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", swapped=True)
    __truediv__, __rtruediv__ = _binary("divide"), _binary("divide", swapped=True)
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _binary("floor_divide", swapped=True)
    __mod__, __rmod__ = _binary("remainder"), _binary("remainder", swapped=True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", swapped=True)
    __matmul__, __rmatmul__ = _binary("matmul"), _binary("matmul", swapped=True)
    __and__, __or__ = _binary("logical_and"), _binary("logical_or")
    __xor__, __invert__ = _binary("logical_xor"), _unary("logical_not")
    __lt__, __le__ = _binary("less_than"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater_than"), _binary("greater_equal")
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")
    __neg__, __abs__ = _unary("negative"), _unary("abs")
    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """NumPy's functions on values are the operators of the same name, so that gradients flow through them.

        Without such an operator, values that want no gradient are taken as the arrays that they hold.
        """
        operator = REGISTRY.get(_UFUNCS.get(ufunc.__name__, ufunc.__name__))
        if method != "__call__" or settings or operator is None or len(operator.inputs) != ufunc.nin:
            values = [v for v in inputs if isinstance(v, ValueMethods)]
            if all(hasattr(v, "__array__") and getattr(v, "stop_gradient", False) for v in values):
                arrays = [np.asarray(v) if isinstance(v, ValueMethods) else v for v in inputs]
                return getattr(ufunc, method)(*arrays, **settings)
            raise OperatorError(
                f"np.{ufunc.__name__} does not work on a {type(self).__name__}; there is no operator that does this: "
                "take x.numpy() of a Tensor, or make an operator of your function with app.custom_op"
            )
        return operator(*inputs)

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("a value without axes has no length")
        if self.shape[0] == UNKNOWN:
            raise ShapeError("the length is not known before the Program runs")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        arrays = [i for i in _index_parts(index) if isinstance(i, list) or _is_array(i)]
        if not arrays:
            return REGISTRY["getitem"](self, index=plain_index(index))
        if len(_index_parts(index)) == 1:
            return REGISTRY["gather"](self, np.asarray(index) if isinstance(index, list) else arrays[0])
        raise ShapeError("only one array of whole numbers can be an index, and only alone")

    # The names that Paddle's tensors have beside those of the operators

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's and Paddle's name
        return REGISTRY["transpose"](self)

    def astype(self, dtype: Any) -> Any:
        """The value with another element type."""
        return REGISTRY["cast"](self, dtype=dtype)

    def t(self) -> Any:
        """The matrix with its two axes exchanged."""
        return REGISTRY["transpose"](self)


def _method(operator: OpDef) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return operator(self, *args, **kwargs)

    method.__name__, method.__doc__ = operator.name, operator.__doc__
    return method


for _operator in REGISTRY.values():
    if _operator.inputs and not hasattr(ValueMethods, _operator.name):
        setattr(ValueMethods, _operator.name, _method(_operator))
