"""Changes in place: the Tensor keeps its memory, so whatever shares that sees the new numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from app.errors import DtypeError, InPlaceError, ShapeError
from app.ops.composed import METHODS
from app.ops.definition import REGISTRY, OpDef
from app.ops.indexing import index_items, take_items
from app.tensor.modes import modes
from app.tensor.versions import note_change, version_of
from app.tensor.views import Step, View, rebase, rebase_part


def refuse_leaf(tensor: Any, incoming: Any = None) -> None:
    """Refuse to change what gradients are wanted of, and no operator made, while operators are recorded.

    Of a view that a user's operator gave out, gradients could not follow what comes in either.
    """
    if not modes().on:
        return
    view: View | None = tensor._view
    base = tensor if view is None else view.base
    if view is not None and view.made_by and _wanted(base, tensor, incoming):
        raise InPlaceError(
            f"{view.made_by} gave out a view of its input, which cannot be changed in place while gradients are "
            "recorded, as they could not follow; return a clone() there, or say ctx.mark_dirty and return the input"
        )
    if base._node is None and not base.stop_gradient:
        what = "" if base is tensor else "a view of "
        raise InPlaceError(
            f"{what}a leaf Tensor with stop_gradient=False (a leaf Variable that requires grad) cannot be changed in "
            "place while gradients are recorded; do it inside app.no_grad(), or write x = x + ... for a new Tensor"
        )


def _wanted(*values: Any) -> bool:
    return not all(getattr(value, "stop_gradient", True) for value in values)


def write(tensor: Any, numbers: Any, index: Any = ...) -> None:
    """Put numbers into the memory of a Tensor, or into a part of it."""
    if not tensor._array.flags.writeable:  # one number that stands for many, or memory that is another's
        tensor._array, tensor._view = tensor._array.copy(), None
    if numbers is not tensor._array:  # else it was done there already
        tensor._array[index] = numbers
    note_change(tensor._array)


class ChangesInPlace:
    """What changes a Tensor. Beside these methods, operators have one with an underscore: `x.exp_()`."""

    __slots__ = ()
    _array: np.ndarray
    _node: Any
    _view: View | None
    shape: Any
    stop_gradient: bool

    @property
    def inplace_version(self) -> int:
        """How often the numbers, or those of a Tensor that shares its memory, were changed in place."""
        return version_of(self._array)

    def set_value(self, value: Any) -> None:
        """Replace the numbers by others of the same shape; no gradient flows through this."""
        tracer = modes().tracer
        if tracer is not None:
            tracer.replace(self, value)
            return
        array = np.asarray(getattr(value, "_array", value))
        if array.shape != self._array.shape:
            raise ShapeError(f"set_value on a Tensor of shape {list(self._array.shape)} got shape {list(array.shape)}")
        write(self, array)

    def become(self, result: Any) -> Any:
        """Take the numbers, and the place in the record, of a result."""
        refuse_leaf(self, result)
        here = modes()
        if here.tracer is not None:
            return here.tracer.replace(self, result)
        if result._array.shape != self._array.shape:
            raise ShapeError(
                f"a Tensor of shape {list(self._array.shape)} cannot be changed in place "
                f"to shape {list(result._array.shape)}"
            )
        own, other = self._array.dtype, result._array.dtype
        if own != other:
            if not np.can_cast(other, own, "same_kind"):
                raise DtypeError(f"a Tensor of {own} cannot be changed in place to {other}; use .astype")
            result = result.astype(own.name)
        if result._node is not None:
            result._node.keep_own(self._array)
        write(self, result._array)
        if here.on and not (self.stop_gradient and result.stop_gradient):
            rebase(self, result)
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        refuse_leaf(self, value)
        here = modes()
        if here.tracer is not None:
            here.tracer.replace(self, here.tracer.with_item(self, index, value))
            return
        write(self, getattr(value, "_array", value), _plain(index))
        if not (here.on and not (self.stop_gradient and getattr(value, "stop_gradient", True))):
            return
        steps, advanced = _way_to(index)
        above = self._view
        view = View(self, steps) if above is None else View(above.base, (*above.steps, *steps))
        rebase_part(view, advanced, value)

    def copy_(self, other: Any, blocking: bool = True) -> Any:
        """Take the numbers of another value, stretched to this shape where they need to be."""
        self[...] = other
        return self

    def fill_(self, value: Any) -> Any:
        """Replace every number by one."""
        self[...] = value
        return self

    def zero_(self) -> Any:
        """Replace every number by zero."""
        return self.fill_(0)


def _plain(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(getattr(i, "_array", i) for i in index)
    return getattr(index, "_array", index)


def _way_to(index: Any) -> tuple[tuple[Step, ...], Any]:
    """The steps to a part that can be a view, or none and the index itself where it lists places."""
    arrays, items = index_items(index)
    return ((), _plain(index)) if arrays else ((Step(take_items, {"items": items}, 0),), None)


def _changing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, OpDef) and function.views:
        return _reshaping(name, function)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.become(function(self, *args, **kwargs))

    method.__name__, method.__doc__ = name, f"`{name[:-1]}` in place."
    return method


def _reshaping(name: str, function: OpDef) -> Callable[..., Any]:
    """The numbers stay as they are, and the Tensor shows them in another shape."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_leaf(self)
        result = function(self, *args, **kwargs)
        if isinstance(result, tuple):
            raise ShapeError(f"{name[:-1]} gives several Tensors, so it cannot be done in place")
        self.take_place_of(result)
        note_change(self._array)
        return self

    method.__name__, method.__doc__ = name, f"`{name[:-1]}` of the Tensor itself."
    return method


def add_methods(kind: type) -> None:
    """Give a class of Tensors the method `name_` for each operator, and each function made of operators."""
    functions: dict[str, Callable[..., Any]] = {**REGISTRY, **METHODS}
    for name, function in functions.items():
        begins_with_value = not isinstance(function, OpDef) or (function.inputs and function.outputs == ("out",))
        if begins_with_value and not hasattr(kind, name + "_"):
            setattr(kind, name + "_", _changing(name + "_", function))
