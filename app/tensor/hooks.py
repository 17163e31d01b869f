"""Functions that see gradients on their way back: hooks, and the kept gradients of values that operators made."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from app.errors import OperatorError
from app.tensor.tape import Hooks

_RETAINED = "retained"


class HookHandle:
    """What `register_hook` gives: it removes the hook again."""

    def __init__(self, hooks: Hooks):
        self._hooks = hooks

    def remove(self) -> bool:
        """Forget the hook; says whether it was still there."""
        return self._hooks.pop(self, None) is not None


def hooks_of(tensor: Any) -> Hooks:
    """The hooks of a value: kept with the operator that made it, or with the Tensor itself where that is a leaf."""
    if tensor._node is None:
        tensor._hooks = {} if tensor._hooks is None else tensor._hooks
        return tensor._hooks
    if tensor._node.hooks is None:
        tensor._node.hooks = {}
    return tensor._node.hooks.setdefault(tensor._slot, {})


def add_hook(tensor: Any, hook: Callable[[Any], Any]) -> HookHandle:
    if tensor.stop_gradient:
        raise OperatorError("a Tensor with stop_gradient=True (that doesn't require gradient) has no use for a hook")
    hooks = hooks_of(tensor)
    handle = HookHandle(hooks)
    hooks[handle] = hook
    if _RETAINED in hooks and tensor.as_in_pytorch:
        hooks[_RETAINED] = hooks.pop(_RETAINED)
    return handle


def retain(tensor: Any) -> None:
    """Keep the gradient of a value that an operator made, as the hooks so far leave it; a leaf's is kept anyway."""
    if tensor.stop_gradient and tensor.as_in_pytorch:
        raise OperatorError("a Tensor with stop_gradient=True (that doesn't require gradient) has no gradient to keep")
    if tensor.stop_gradient or tensor._node is None:
        return
    known = weakref.ref(tensor)

    def keep(gradient: Any) -> None:
        alive = known()
        if alive is not None:
            own = gradient.clone()
            alive.grad = own if alive.grad is None else alive.grad + own

    hooks_of(tensor)[_RETAINED] = keep


def keep_retaining(tensor: Any, node: Any, slot: int) -> None:
    """After a change in place: what keeps the gradient of a value moves with it from where it stood to its new place.

    Hooks stay where they were, and see the gradient of the value before the change.
    """
    hooks = None if node is None or node.hooks is None else node.hooks.get(slot)
    if hooks and _RETAINED in hooks and not tensor.stop_gradient:
        hooks_of(tensor)[_RETAINED] = hooks.pop(_RETAINED)
