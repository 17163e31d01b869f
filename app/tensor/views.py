"""Tensors that share numbers: what becomes of their places on the tape when one of them is changed in place.

A view remembers the Tensor that it was made of, its base, and by which operators. After a recorded change of either,
the base stands where its changed value does, and its views are made of it anew, so gradients flow through the change
whichever of them is used. A value that was put into a part of another is one operator on the tape, `put_part`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.ops.broadcasting import sum_to
from app.ops.definition import OpDef, apply
from app.ops.shaping import cast
from app.tensor.hooks import keep_retaining
from app.tensor.tape import Node
from app.tensor.versions import owner_of

_lock = threading.RLock()
"""Held while a base learns of a view: several threads may take views of one Tensor."""


class Step(NamedTuple):
    """One operator on the way from a base to its view."""

    definition: OpDef
    attributes: Mapping[str, Any]
    slot: int

    def __call__(self, value: Any) -> Any:
        result = apply(self.definition, [value], self.attributes)
        return result[self.slot] if isinstance(result, (tuple, list)) else result


class View:
    """How a Tensor is made of the one whose numbers it shares."""

    __slots__ = ("base", "made_by", "steps")

    def __init__(self, base: Any, steps: Sequence[Step], made_by: str = ""):
        self.base = base
        self.steps = tuple(steps)
        self.made_by = made_by
        """The label of the user's operator that gave it out, whose steps are not known; no change can be followed."""

    def made_anew(self) -> Any:
        value = self.base
        for step in self.steps:
            value = step(value)
        return value


def relate(view: Any, source: Any, definition: OpDef, attributes: Mapping[str, Any], slot: int) -> None:
    """Note that a result shares the numbers of the value that it was made of, if it does."""
    if view._array.base is None or owner_of(view._array) is not owner_of(source._array):
        return
    above: View | None = source._view
    base, steps, made_by = (source, (), "") if above is None else (above.base, above.steps, above.made_by)
    view._view = View(base, (*steps, Step(definition, attributes, slot)), made_by)
    if made_by:
        return
    with _lock:
        known = [] if base._views is None else [ref for ref in base._views if ref() is not None]
        base._views = [*known, weakref.ref(view)]


def note_sharing(result: Any, inputs: Sequence[Any], made_by: str) -> None:
    """Note that what a user's operator gave out shares the numbers of one of its inputs, if it does."""
    for source in inputs:
        if source is not result and owner_of(result._array) is owner_of(source._array):
            result._view = View(source if source._view is None else source._view.base, (), made_by)


def rebase(target: Any, result: Any) -> None:
    """Give a Tensor that was changed in place, and those that share its numbers, their places on the tape."""
    view: View | None = target._view
    if view is not None:
        rebase_part(view, None, result)
        return
    _move(target, result._node, result._slot, result.stop_gradient)
    _renew_views(target)


def _move(tensor: Any, node: Node | None, slot: int, stop_gradient: bool) -> None:
    before = tensor._node, tensor._slot
    tensor._node, tensor._slot, tensor.stop_gradient = node, slot, stop_gradient
    keep_retaining(tensor, *before)


def rebase_part(view: View, index: Any, value: Any) -> None:
    """Record that `value` was put into a view, or with `index` into a part of it."""
    base = view.base
    values = [base, value]
    needs = [not getattr(v, "stop_gradient", True) for v in values]
    sources = [v.source if need else None for v, need in zip(values, needs, strict=True)]
    arrays = [base._array, np.asarray(getattr(value, "_array", value))]
    node = Node(put_part, sources, arrays, [base._array], {"steps": view.steps, "index": index}, needs)
    _move(base, node, 0, False)
    _renew_views(base)


def _renew_views(base: Any) -> None:
    for ref in base._views or ():
        view = ref()
        if view is not None:
            new = view._view.made_anew()
            _move(view, new._node, new._slot, new.stop_gradient)


def _put_part(x: Any, value: Any, *, steps: Any, index: Any = None) -> Any:
    """A copy of a value, with others in the part that the steps, and then the index, lead to."""
    out = part = x.copy()
    for step in steps:
        part = step(part)
    part[... if index is None else index] = value
    return out


put_part = OpDef("put_part", _put_part, lambda x, value, **attributes: x)


@put_part.gradient
def _(value_like: Any, dout: Any, steps: Any, index: Any) -> Any:
    part = dout
    for step in steps:
        part = step(part)
    if index is not None:
        part = part[index]
    rest = apply(put_part, [dout, np.zeros((), np.float32)], {"steps": steps, "index": index})
    part = sum_to(part, shape=tuple(value_like.shape))
    return rest, part if part.dtype == value_like.dtype else cast(part, dtype=value_like.dtype)
