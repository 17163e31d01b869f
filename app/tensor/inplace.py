"""Changes in place: the Tensor keeps its memory, so every Tensor that shares the memory has the new elements.

Gradients follow a recorded change only for the Tensor that is changed. So it is refused while another Tensor shares the
memory, such as a view: change a copy, `x.clone()`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.errors import BoundsError, DtypeError, InPlaceError, ShapeError
from app.ops.definition import REGISTRY
from app.ops.dtype import fitting
from app.ops.indexing import Index, in_order, index_items, put_items
from app.ops.public import PUBLIC
from app.ops.values import Operand, Setting
from app.tensor.modes import modes
from app.tensor.tape import Node, move_retained_gradient, note_change, owner_of

if TYPE_CHECKING:
    from app.tensor.tensor import Tensor

# Shared memory

_lock = threading.RLock()
"""Held while Tensors are noted to share memory, because several threads may make views of one Tensor."""


def note_sharing(result: Tensor, source: Tensor) -> None:
    """Note that the result of an operator shares memory with one of its inputs, if it does."""
    if result is source or owner_of(result._array) is not owner_of(source._array):
        return
    with _lock:
        if source._sharing is None:
            source._sharing = weakref.WeakValueDictionary({id(source): source})
        for one in [result, *_sharing_with(result)]:
            source._sharing[id(one)] = one
            one._sharing = source._sharing


def _sharing_with(tensor: Tensor) -> list[Tensor]:
    """The other Tensors that are known to share the memory of a Tensor."""
    if tensor._sharing is None:
        return []
    others = [ref() for ref in tensor._sharing.valuerefs()]
    return [one for one in others if one is not None and one is not tensor]


def stop_sharing(tensor: Tensor) -> None:
    """Note that a Tensor has other memory now."""
    if tensor._sharing is not None:
        tensor._sharing.pop(id(tensor), None)
        tensor._sharing = None


def record_change(target: Tensor, node: Node | None, slot: int, stop_gradient: bool) -> None:
    """Give a Tensor that was changed in place its new position on the tape."""
    before = target._node, target._slot
    target._node, target._slot, target.stop_gradient = node, slot, stop_gradient
    move_retained_gradient(target, *before)


# Changes


def assigning(name: str) -> Callable[[Any, Operand], Any]:
    """The method of an assignment such as `x += y`."""
    definition = REGISTRY[name]
    return lambda self, other: self.become(definition(self, other))


def making_new(name: str, symbol: str) -> Callable[[Any, Operand], Any]:
    """The method of an assignment such as `x += y` that makes a new Tensor, unless `x` is a parameter to be updated."""

    def method(self: Any, other: Operand) -> Any:
        if not modes().on and self._node is None and not self.stop_gradient:
            raise InPlaceError(
                f"`x {symbol}= y` makes a new Tensor, as in Paddle, and leaves x, a leaf with stop_gradient=False, as "
                f"it is; write x.{name}_(y) to change x itself, or x = x {symbol} y for a new Tensor"
            )
        return NotImplemented

    return method


def check_changeable(tensor: Tensor, *incoming: Operand) -> None:
    """Raise an error if a change of a Tensor in place would leave gradients wrong.

    That is so for a leaf that requires a gradient, and for memory that another Tensor shares.
    """
    if not modes().on:
        return
    sharing = _sharing_with(tensor) if tensor._array.flags.writeable else []  # otherwise `write` copies it
    for one in (tensor, *sharing):
        check_not_leaf(one, "" if one is tensor else "memory of ")
    if not sharing or modes().tracer is not None or not _require_gradients(tensor, *incoming, *sharing):
        return
    raise InPlaceError(
        f"a Tensor of shape {list(tensor._array.shape)} cannot be changed in place while gradients are recorded and "
        f"another one, of shape {list(sharing[0]._array.shape)}, is a view of the same memory, as its gradients would "
        "not follow; change a copy (x = x.clone() first), or make the other one a copy (x[0].clone())"
    )


def check_not_leaf(tensor: Tensor, what: str = "") -> None:
    """Raise an error for a leaf that requires a gradient, if operators are recorded."""
    if modes().on and tensor._node is None and not tensor.stop_gradient:
        raise InPlaceError(
            f"{what}a leaf Tensor with stop_gradient=False (a leaf Variable that requires grad) cannot be changed in "
            "place while gradients are recorded; do it inside opsmith.no_grad(), or write x = x + ... for a new Tensor"
        )


def _require_gradients(*values: Operand) -> bool:
    return not all(getattr(value, "stop_gradient", True) for value in values)


def write(tensor: Tensor, numbers: npt.ArrayLike, index: Index = ...) -> None:
    """Write numbers to the memory of a Tensor, or to a part of it."""
    if not tensor._array.flags.writeable:  # a broadcast scalar, or memory of another owner
        tensor._array = tensor._array.copy()
        stop_sharing(tensor)
    if numbers is not tensor._array or index is not ...:  # otherwise the operator has written them already
        if index is not ...:
            numbers = np.asarray(numbers, order="C")
            numbers = numbers.reshape(()) if numbers.size == 1 else numbers  # NumPy writes no [1] to one element
        try:
            tensor._array[index] = numbers
        except (ValueError, TypeError, IndexError) as error:  # NumPy has a TypeError for some masks
            kind = BoundsError if isinstance(error, IndexError) else ShapeError
            raise kind(f"a part of a Tensor of shape {list(tensor._array.shape)} cannot be set: {error}") from error
    note_change(tensor._array)


def set_value(tensor: Tensor, value: Operand) -> None:
    """Replace the elements of a Tensor; no gradient flows through this."""
    tracer = modes().tracer
    if tracer is not None:
        tracer.replace(tensor, value)
        return
    array = np.asarray(getattr(value, "_array", value))
    if array.shape != tensor._array.shape:
        raise ShapeError(f"set_value on a Tensor of shape {list(tensor._array.shape)} got shape {list(array.shape)}")
    own = tensor._array.dtype
    write(tensor, array if array.dtype is own else fitting("set_value: the Tensor", array, own.name))


def become(tensor: Tensor, result: Any) -> Any:
    """Give a Tensor the elements and the tape position of a result."""
    check_changeable(tensor, result)
    here = modes()
    if here.tracer is not None:
        return here.tracer.replace(tensor, result)
    if result._array.shape != tensor._array.shape:
        raise ShapeError(
            f"a Tensor of shape {list(tensor._array.shape)} cannot be changed in place "
            f"to shape {list(result._array.shape)}"
        )
    own, other = tensor._array.dtype, result._array.dtype
    if own != other:
        if not np.can_cast(other, own, "same_kind"):
            raise DtypeError(f"a Tensor of {own} cannot be changed in place to {other}; use .astype")
        result = result.astype(own.name)
    if result._node is not None:
        result._node.copy_saved(tensor._array)
    write(tensor, result._array)
    if here.on and not (tensor.stop_gradient and result.stop_gradient):
        record_change(tensor, result._node, result._slot, result.stop_gradient)
    return tensor


def set_item(tensor: Tensor, index: Index, value: Any) -> None:
    """Write a value to a part of a Tensor."""
    check_changeable(tensor, value)
    here = modes()
    if here.tracer is not None:
        here.tracer.replace(tensor, here.tracer.with_item(tensor, index, value))
        return
    array = getattr(value, "_array", value)
    write(tensor, array, _index_of_arrays(index))
    needs = [not tensor.stop_gradient, not getattr(value, "stop_gradient", True)]
    if not here.on or True not in needs:
        return
    arrays, items = index_items(index)
    arrays = [one._array if hasattr(one, "_array") else np.array(one) for one in arrays]
    sources = [one.source if need else None for one, need in zip((tensor, value), needs, strict=True)]
    node = here.node(
        put_items,
        [*sources, *[None] * len(arrays)],
        [tensor._array, np.asarray(array), *arrays],
        [tensor._array],
        {**put_items.attributes, "items": items},
        [*needs, *[False] * len(arrays)],
    )
    record_change(tensor, node, 0, False)


def _index_of_arrays(index: Index) -> Index:
    if isinstance(index, tuple):
        return in_order(tuple(getattr(i, "_array", i) for i in index))
    return in_order(getattr(index, "_array", index))


class ChangesInPlace:
    """The in-place methods of Tensors and of the values of a traced function. Those of operators are added below."""

    __slots__ = ()
    __setitem__: Callable[[Any, Any], None]
    become: Callable[[Any], Any]
    """Take the elements of a result of the same shape."""

    def copy_(self, other: Operand) -> Any:
        """Copy the elements of another value, broadcast to this shape."""
        self[...] = other
        return self

    def fill_(self, value: Operand) -> Any:
        """Fill with a number."""
        return self.copy_(value)

    def zero_(self) -> Any:
        """Fill with zeros."""
        return self.copy_(0)


def in_place_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The method `name_` of a function."""

    def method(self: ChangesInPlace, *args: Operand | Setting, **kwargs: Operand | Setting) -> Any:
        return self.become(function(self, *args, **kwargs))

    method.__name__, method.__doc__ = name, f"`{name[:-1]}` in place."
    return method


for _name, _entry in PUBLIC.items():
    if _entry.in_place:
        setattr(ChangesInPlace, f"{_name}_", in_place_method(f"{_name}_", _entry.function))
