"""Changes in place: the Tensor keeps its memory, so every Tensor that shares the memory has the new elements.

A view stores the Tensor that it was made from, its base, and the operators that made it. After a recorded change of
either, the base gets the tape position of its new value, and its views are recomputed from it, so that gradients flow
through the change whichever of them is used. Writing to a part of a Tensor is one operator on the tape, `put_part`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from app.errors import DtypeError, InPlaceError, ShapeError
from app.ops.broadcasting import sum_to
from app.ops.definition import REGISTRY, OpDef, apply
from app.ops.dtype import fitting
from app.ops.indexing import Index, in_order, index_items, remaining_writes, take_items
from app.ops.logic import where
from app.ops.public import PUBLIC
from app.ops.shaping import cast
from app.ops.values import Applied, Array, Attributes, Gradients, Operand, Setting, Value
from app.tensor import tape
from app.tensor.modes import modes
from app.tensor.tape import Node, move_retained_gradient, note_change, owner_of

if TYPE_CHECKING:
    from app.tensor.tensor import Tensor

# Views

_lock = threading.RLock()
"""Held while a view is added to the views of its base, because several threads may make views of one Tensor."""


class Step(NamedTuple):
    """One operator on the way from a base to its view."""

    definition: OpDef
    attributes: Attributes
    slot: int
    others: Sequence[Operand] = ()
    """The inputs after the first, of which only the shape is read."""

    def __call__(self, value: Operand) -> Applied:
        result = apply(self.definition, [value, *self.others], self.attributes)
        return result[self.slot] if isinstance(result, (tuple, list)) else result


class View:
    """How a Tensor is computed from its base, whose memory it shares."""

    __slots__ = ("base", "made_by", "steps")

    def __init__(self, base: Tensor, steps: Sequence[Step], made_by: str = ""):
        self.base = base
        self.steps = tuple(steps)
        self.made_by = made_by
        """The label of the user's operator that returned it; gradients cannot follow a change through unknown steps."""

    def recomputed(self) -> Tensor:
        value: Tensor = self.base
        for step in self.steps:
            value = step(value)
        return value


def note_view(view: Tensor, inputs: Sequence[Any], definition: OpDef, attributes: Attributes, slot: int) -> None:
    """Record that a result of an operator is a view, if it shares the memory of its first input."""
    source: Tensor = inputs[0]
    if view._array.base is None or owner_of(view._array) is not owner_of(source._array):
        return
    above: View | None = source._view
    base, steps, made_by = (source, (), "") if above is None else (above.base, above.steps, above.made_by)
    others = [getattr(x, "_array", x) for x in inputs[1:]]
    view._view = View(base, (*steps, Step(definition, attributes, slot, others)), made_by)
    if made_by:
        return
    with _lock:
        known = [] if base._views is None else [ref for ref in base._views if ref() is not None]
        base._views = [*known, weakref.ref(view)]


def new_base(tensor: Tensor) -> Tensor:
    """Return a Tensor with the memory, the tape position and the views of one that becomes a view of it."""
    base: Tensor = tape.new_tensor(tensor._array, tensor.stop_gradient)
    base._node, base._slot = tensor._node, tensor._slot
    with _lock:
        for ref in tensor._views or ():
            view = ref()
            if view is not None and view._view is not None:
                view._view.base = base
        base._views, tensor._views = [*(tensor._views or ()), weakref.ref(tensor)], None
    return base


def note_view_of_inputs(result: Tensor, inputs: Sequence[Tensor], made_by: str) -> None:
    """Record that a result of a user's operator is a view, if it shares the memory of one of its inputs."""
    for source in inputs:
        if source is not result and owner_of(result._array) is owner_of(source._array):
            result._view = View(source if source._view is None else source._view.base, (), made_by)


def record_change(target: Tensor, result: Tensor) -> None:
    """Record that a Tensor was changed in place to `result`, for it and for its base and views."""
    view: View | None = target._view
    if view is not None:
        _record_change_of_part(view, None, result)
        return
    _move(target, result._node, result._slot, result.stop_gradient)
    _recompute_views(target)


def _move(tensor: Tensor, node: Node | None, slot: int, stop_gradient: bool) -> None:
    """Give a Tensor another position on the tape."""
    before = tensor._node, tensor._slot
    tensor._node, tensor._slot, tensor.stop_gradient = node, slot, stop_gradient
    move_retained_gradient(tensor, *before)


def _record_change_of_part(view: View, index: Index, value: Any) -> None:
    """Record that `value` was written to a view or, with `index`, to a part of it."""
    base = view.base
    values = [base, value]
    needs = [not getattr(v, "stop_gradient", True) for v in values]
    sources = [v.source if need else None for v, need in zip(values, needs, strict=True)]
    arrays = [base._array, np.asarray(getattr(value, "_array", value))]
    node = modes().node(put_part, sources, arrays, [base._array], {"steps": view.steps, "index": index}, needs)
    _move(base, node, 0, False)
    _recompute_views(base)


def _recompute_views(base: Tensor) -> None:
    for ref in base._views or ():
        view = ref()
        if view is not None and view._view is not None:
            new = view._view.recomputed()
            _move(view, new._node, new._slot, new.stop_gradient)


def _put_part(x: Array, value: Array, *, steps: Sequence[Step], index: Index = None) -> Array:
    """A copy of `x` with the part selected by the steps and then the index replaced by `value`."""
    out: Array = np.array(x, order="C")
    part = _part_of(out, steps)
    if np.may_share_memory(part, out):
        part[... if index is None else index] = value
    else:  # the steps copy an array of this layout, such as a reshape of a transposed one
        places = _part_of(np.arange(out.size).reshape(out.shape), steps)
        out.reshape(-1)[places[... if index is None else index]] = value
    return out


def _part_of(array: Array, steps: Sequence[Step]) -> Array:
    for step in steps:
        array = step(array)
    return array


put_part = OpDef("put_part", _put_part, lambda x, value, **attributes: x)


@put_part.gradient
def _(value_like: Value, dout: Value, steps: Sequence[Step], index: Index) -> Gradients:
    part = dout
    for step in steps:
        part = step(part)
    if index is not None:
        remains = remaining_writes(tuple(part.shape), index)
        part = where(remains, part[index], 0.0)
    rest = apply(put_part, [dout, np.zeros((), np.float32)], {"steps": steps, "index": index})
    part = sum_to(part, shape=tuple(value_like.shape))
    return rest, part if part.dtype == value_like.dtype else cast(part, dtype=value_like.dtype)


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


def check_changeable(tensor: Tensor, incoming: Operand = None) -> None:
    """Raise an error if a leaf that requires a gradient would be changed while operators are recorded.

    The same holds for a view that a user's operator returned, if gradients are required, as these could not follow.
    """
    if not modes().on:
        return
    view: View | None = tensor._view if tensor._array.flags.writeable else None  # otherwise `write` copies it
    base = tensor if view is None else view.base
    if view is not None and view.made_by and _require_gradients(base, tensor, incoming):
        raise InPlaceError(
            f"{view.made_by} returned a view of its input, which cannot be changed in place while gradients are "
            "recorded, because they cannot follow the change; return a clone() there, or call ctx.mark_dirty and "
            "return the input"
        )
    if base._node is None and not base.stop_gradient:
        what = "" if base is tensor else "a view of "
        raise InPlaceError(
            f"{what}a leaf Tensor with stop_gradient=False (a leaf Variable that requires grad) cannot be changed in "
            "place while gradients are recorded; do it inside opsmith.no_grad(), or write x = x + ... for a new Tensor"
        )


def _require_gradients(*values: Operand) -> bool:
    return not all(getattr(value, "stop_gradient", True) for value in values)


def write(tensor: Tensor, numbers: npt.ArrayLike, index: Index = ...) -> None:
    """Write numbers to the memory of a Tensor, or to a part of it."""
    if not tensor._array.flags.writeable:  # a broadcast scalar, or memory of another owner
        tensor._array, tensor._view = tensor._array.copy(), None
    if numbers is not tensor._array:  # otherwise the operator has written them already
        tensor._array[index] = numbers if index is ... else np.asarray(numbers, order="C")
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
        record_change(tensor, result)
    return tensor


def set_item(tensor: Tensor, index: Index, value: Any) -> None:
    """Write a value to a part of a Tensor."""
    check_changeable(tensor, value)
    here = modes()
    if here.tracer is not None:
        here.tracer.replace(tensor, here.tracer.with_item(tensor, index, value))
        return
    write(tensor, getattr(value, "_array", value), _index_of_arrays(index))
    if not (here.on and not (tensor.stop_gradient and getattr(value, "stop_gradient", True))):
        return
    steps, advanced = _steps_to_part(index)
    above = tensor._view
    view = View(tensor, steps) if above is None else View(above.base, (*above.steps, *steps))
    _record_change_of_part(view, advanced, value)


def _index_of_arrays(index: Index) -> Index:
    if isinstance(index, tuple):
        return in_order(tuple(getattr(i, "_array", i) for i in index))
    return in_order(getattr(index, "_array", index))


def _steps_to_part(index: Index) -> tuple[tuple[Step, ...], Index]:
    """The step to a part that is a view; for an index with arrays, no step and the index itself."""
    arrays, items = index_items(index)
    return ((), _index_of_arrays(index)) if arrays else ((Step(take_items, {"items": items}, 0),), None)


class ChangesInPlace:
    """The in-place methods of Tensors and of the values of a traced function. Those of operators are added below."""

    __slots__ = ()
    __setitem__: Callable[[Any, Any], None]
    become: Callable[[Any], Any]
    """Take the elements of a result of the same shape."""
    change_shape: Callable[[Callable[[Any], Any]], Any]
    """Become the view of this value that a function makes."""

    def copy_(self, other: Operand, blocking: bool = True) -> Any:
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
    """The method `name_` of a function; that of an operator that makes views changes the shape."""
    views = isinstance(function, OpDef) and function.views

    def method(self: ChangesInPlace, *args: Operand | Setting, **kwargs: Operand | Setting) -> Any:
        if views:
            return self.change_shape(lambda value: function(value, *args, **kwargs))
        return self.become(function(self, *args, **kwargs))

    method.__name__, method.__doc__ = name, f"`{name[:-1]}` in place."
    return method


for _name, _entry in PUBLIC.items():
    if _entry.in_place:
        setattr(ChangesInPlace, f"{_name}_", in_place_method(f"{_name}_", _entry.function))
