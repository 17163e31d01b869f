"""The eager value: an array that remembers, where a gradient is wanted, which operator made it."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.errors import DtypeError, OperatorError, ShapeError
from app.graph import names
from app.ops.definition import REGISTRY, OpDef, kernel_error
from app.ops.dtype import canonical, get_default_dtype
from app.ops.methods import ValueMethods
from app.ops.spec import spec_of
from app.tensor.modes import recording
from app.tensor.tape import Node


def _in_place(name: str) -> Any:
    definition = REGISTRY[name]
    return lambda self, other: self.become(definition(self, other))


class Tensor(ValueMethods):
    """An array on which operators run at once. With `stop_gradient=False` they are recorded for `backward`."""

    __slots__ = ("__weakref__", "_array", "_name", "_node", "_slot", "grad", "persistable", "stop_gradient")

    def __init__(self, array: np.ndarray, stop_gradient: bool = True, name: str | None = None):
        self._array = array
        self.stop_gradient = stop_gradient
        self.grad: Tensor | None = None
        self.persistable = False
        self._name = name
        self._node: Node | None = None
        self._slot = 0

    # What it is

    @property
    def shape(self) -> list[int]:
        return list(self._array.shape)

    @property
    def dtype(self) -> str:
        return self._array.dtype.name

    @property
    def size(self) -> int:
        return int(self._array.size)

    @property
    def ndim(self) -> int:
        return int(self._array.ndim)

    @property
    def name(self) -> str:
        if self._name is None:
            self._name = names.generate("generated_tensor")
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def place(self) -> str:
        return "Place(cpu)"

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator made it."""
        return self._node is None

    @property
    def source(self) -> Any:
        """Where its gradient goes: the operator that made it and which output it is, or the Tensor itself."""
        return self if self._node is None else (self._node, self._slot)

    def numel(self) -> int:
        return int(self._array.size)

    def dim(self) -> int:
        return int(self._array.ndim)

    # Its numbers

    def numpy(self) -> np.ndarray:
        """The numbers as a NumPy array of its own."""
        return self._array.copy()

    def item(self) -> Any:
        """The one number of a Tensor with a single element."""
        if self._array.size != 1:
            raise ShapeError(f"item() needs a Tensor with one element, this one has shape {self.shape}")
        return self._array.item()

    def tolist(self) -> Any:
        return self._array.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False and dtype in (None, self._array.dtype):
            return self._array
        return self._array.astype(dtype or self._array.dtype)

    def __bool__(self) -> bool:
        if self._array.size != 1:
            raise ShapeError(f"a Tensor of shape {self.shape} is neither true nor false; use app.any or app.all")
        return bool(self._array)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def __format__(self, form: str) -> str:
        return format(self.item(), form) if form and self._array.size == 1 else format(str(self), form)

    def __repr__(self) -> str:
        indent = " " * 7
        numbers = np.array2string(self._array, separator=", ", prefix=indent, precision=8)
        return (
            f"Tensor(shape={self.shape}, dtype={self.dtype}, place={self.place}, "
            f"stop_gradient={self.stop_gradient},\n{indent}{numbers})"
        )

    # Gradients

    def backward(self, grad_tensor: Any = None, retain_graph: bool = False) -> None:
        """Add the gradients of this Tensor to the `.grad` of the leaves that it was computed from."""
        from app.tensor.backward import backward

        backward([self], [grad_tensor], retain_graph)

    def clear_grad(self) -> None:
        """Forget the gradient."""
        self.grad = None

    clear_gradient = clear_grad

    def detach(self) -> Tensor:
        """The same numbers, with no gradient flowing back through them."""
        return Tensor(self._array)

    def clone(self) -> Tensor:
        """A copy through which gradients flow."""
        copied: Tensor = self.assign()  # type: ignore[attr-defined]
        return copied

    # Changes in place: the Tensor gets new numbers; what was saved for a backward pass keeps the old ones

    def set_value(self, value: Any) -> None:
        """Replace the numbers by others of the same shape."""
        array = np.array(value, dtype=self._array.dtype)
        if array.shape != self._array.shape:
            raise ShapeError(f"set_value on a Tensor of shape {self.shape} got shape {list(array.shape)}")
        self._array = array

    def become(self, result: Tensor) -> Tensor:
        """Take the numbers, and the place in the record, of a result."""
        if recording.on and self._node is None and not self.stop_gradient:
            raise OperatorError(
                "a leaf Tensor with stop_gradient=False cannot be changed in place while gradients are recorded; "
                "do it inside app.no_grad(), or write x = x + ... for a new Tensor"
            )
        if result._array.shape != self._array.shape:
            raise ShapeError(f"a Tensor of shape {self.shape} cannot be changed in place to shape {result.shape}")
        if result.dtype != self.dtype:
            if not np.can_cast(result.dtype, self.dtype, "same_kind"):
                raise DtypeError(f"a Tensor of {self.dtype} cannot be changed in place to {result.dtype}; use .astype")
            result = result.astype(self.dtype)
        self._array = result._array
        if recording.on:
            self._node, self._slot, self.stop_gradient = result._node, result._slot, result.stop_gradient
        return self

    def take_place_of(self, result: Tensor) -> None:
        """Become the same value as a result: its numbers, and its place in the record."""
        self._array, self._node, self._slot = result._array, result._node, result._slot
        self.stop_gradient = result.stop_gradient

    __iadd__, __isub__ = _in_place("add"), _in_place("subtract")
    __imul__, __itruediv__ = _in_place("multiply"), _in_place("divide")

    def __setitem__(self, index: Any, value: Any) -> None:
        if recording.on and not (self.stop_gradient and getattr(value, "stop_gradient", True)):
            raise OperatorError("assigning to a part of a Tensor is not recorded; do it inside app.no_grad()")
        changed = self._array.copy()
        changed[index] = np.asarray(value)
        self._array = changed

    # Applying operators

    def apply_operator(
        self, definition: OpDef, inputs: Sequence[Any], attributes: Mapping[str, Any], into: Any = None
    ) -> Any:
        """Run the operator now, and record it if a gradient may be asked for."""
        arrays = [x._array if isinstance(x, Tensor) else _plain_array(definition, x) for x in inputs]
        if definition.checked:
            definition.infer_outputs([spec_of(a) for a in arrays], attributes)
        try:
            results = definition.kernel(*arrays, **attributes)
        except Exception as error:
            raise kernel_error(definition, arrays, attributes, error) from error
        if not isinstance(results, tuple):
            results = (results,) if results is not None else ()
        outputs = [np.asarray(r) for r in results]
        if into is not None:
            for target, array in zip(into, outputs, strict=True):
                target._array = array
            return into
        node = _record(definition, inputs, arrays, outputs, attributes)
        tensors = [_result(array, node, slot) for slot, array in enumerate(outputs)]
        return tensors[0] if len(tensors) == 1 and not definition.many_outputs else tuple(tensors) or None


def _plain_array(definition: OpDef, value: Any) -> Any:
    if value is None or isinstance(value, (np.ndarray, np.generic)):
        return value
    if hasattr(value, "apply_operator"):
        raise OperatorError(
            f"{definition.label}: a Tensor and a {type(value).__name__} were mixed; "
            "a Tensor has a value now, a Variable only when its Program runs"
        )
    return np.asarray(value)


def _record(
    definition: OpDef,
    inputs: Sequence[Any],
    arrays: Sequence[Any],
    outputs: Sequence[np.ndarray],
    attributes: Mapping[str, Any],
) -> Node | None:
    if not (recording.on and definition.differentiable):
        return None
    needs = [isinstance(x, Tensor) and not x.stop_gradient for x in inputs]
    return Node(definition, inputs, arrays, outputs, attributes, needs) if any(needs) else None


def _result(array: np.ndarray, node: Node | None, slot: int) -> Tensor:
    tensor = Tensor(array)
    if node is not None and array.dtype.kind == "f":
        tensor._node, tensor._slot, tensor.stop_gradient = node, slot, False
    return tensor


def on_tape(array: Any, source: Any) -> Tensor:
    """A Tensor over an array that stands where `source` says; with None, one without gradient."""
    if isinstance(source, Tensor) and source._array is array:
        return source
    tensor = Tensor(np.asarray(array), stop_gradient=source is None)
    if isinstance(source, tuple):
        tensor._node, tensor._slot = source
    return tensor


def to_tensor(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Tensor:
    """A Tensor of numbers, lists or arrays; Python floats become the default type, arrays keep theirs."""
    if isinstance(data, Tensor):
        data = data._array
    array = np.array(data)
    if dtype is None and array.dtype.kind == "f" and not hasattr(data, "dtype"):
        dtype = get_default_dtype()
    return Tensor(array.astype(canonical(dtype or array.dtype), copy=False), stop_gradient)


class Parameter(Tensor):
    """A Tensor that training changes."""

    __slots__ = ()

    def __init__(self, array: np.ndarray, name: str | None = None, trainable: bool = True):
        super().__init__(array, stop_gradient=not trainable, name=name or names.generate("param"))
        self.persistable = True

    @property
    def trainable(self) -> bool:
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self.stop_gradient = not trainable
