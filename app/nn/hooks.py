"""Hooks: functions that are called before and after a layer's `forward`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from app.custom.pylayer import Function
from app.errors import silent_end
from app.listed import as_list
from app.tensor import Tensor

_numbers = itertools.count()

Hooks = MutableMapping[int, Callable[..., Any]]


class HookRemoveHelper:
    """The handle that registering a hook returns."""

    def __init__(self, hooks: Hooks, hook: Callable[..., Any]):
        self._hooks, self._number = hooks, next(_numbers)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Remove the hook."""
        self._hooks.pop(self._number, None)


class BothHandles:
    """The handle of hooks that belong together."""

    def __init__(self, handles: Sequence[HookRemoveHelper]):
        self._handles = handles

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()


def inputs_after(hooks: Hooks, layer: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs of a layer after all hooks, each of which may replace them."""
    for hook in list(hooks.values()):
        changed = _called(hook, layer, inputs)
        if changed is not None:
            inputs = changed if isinstance(changed, tuple) else (changed,)
    return inputs


def output_after(hooks: Hooks, layer: Any, inputs: tuple[Any, ...], output: Any) -> Any:
    """The output of a layer after all hooks, each of which may replace it."""
    for hook in list(hooks.values()):
        changed = _called(hook, layer, inputs, output)
        output = output if changed is None else changed
    return output


def _called(hook: Callable[..., Any], *given: Any) -> Any:
    try:
        return hook(*given)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise silent_end(f"hook {getattr(hook, '__name__', hook)}", error) from error


# Backward

_this_call: ContextVar[dict[BackwardHook, _CallOfLayer]] = ContextVar("this_call")
"""What the hooks of one call of a layer share before and after `forward`; other threads and calls have their own."""


@contextmanager
def one_call() -> Iterator[None]:
    """The block in which a layer is called with its hooks."""
    outside = _this_call.set({})
    try:
        yield
    finally:
        _this_call.reset(outside)


class BackwardHook:
    """Calls `hook(layer, input_gradients, output_gradients)` when a backward pass has computed both.

    What the hook returns replaces the gradients of the inputs. Tensors inside lists are not counted as inputs.
    """

    def __init__(self, hook: Callable[..., Any]):
        self._hook = hook

    def before(self, layer: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the inputs through an identity whose backward receives their gradients."""
        call = _this_call.get()[self] = _CallOfLayer(self._hook, layer)
        places = [place for place, value in enumerate(inputs) if isinstance(value, Tensor)]
        call.inputs = len(places)
        call.ends = all(inputs[place].stop_gradient for place in places)
        if call.ends:
            return inputs
        marked = dict(zip(places, as_list(_Leaving.apply(call, *(inputs[place] for place in places))), strict=True))
        return tuple(marked.get(place, value) for place, value in enumerate(inputs))

    def after(self, layer: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Pass the outputs through an identity whose backward receives their gradients."""
        call, listed = _this_call.get().get(self), output if isinstance(output, (tuple, list)) else (output,)
        if call is None or not all(isinstance(value, Tensor) for value in listed):
            return None
        marked = _Entering.apply(call, *listed)
        return marked if isinstance(output, Tensor) else type(output)(as_list(marked))


class _CallOfLayer:
    """The gradients of one call of a layer, which become known at two points of the backward pass."""

    inputs: int
    ends: bool
    """Whether no input requires a gradient."""

    def __init__(self, hook: Callable[..., Any], layer: Any):
        self.hook, self.layer = hook, layer
        self.of_outputs: tuple[Any, ...] = ()

    def changed(self, of_inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        result = _called(self.hook, self.layer, of_inputs, self.of_outputs)
        return of_inputs if result is None else result if isinstance(result, tuple) else (result,)


class _Leaving(Function):
    """The identity around a layer's inputs."""

    @staticmethod
    def forward(ctx: Any, call: _CallOfLayer, *values: Any) -> Any:
        ctx.call = call
        ctx.mark_non_differentiable(*(value for value in values if value.stop_gradient))
        return values if len(values) > 1 else values[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.call.changed(gradients))


class _Entering(Function):
    """The identity around a layer's outputs."""

    @staticmethod
    def forward(ctx: Any, call: _CallOfLayer, *values: Any) -> Any:
        ctx.call = call
        return values if len(values) > 1 else values[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.call.of_outputs = gradients
        if ctx.call.ends:
            ctx.call.changed((None,) * ctx.call.inputs)
        return (None, *gradients)
