"""Hooks: functions that are called before and after a layer's `forward`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from app.custom.pylayer import Function
from app.errors import OperatorError, silent_end
from app.graph.variable import Variable
from app.listed import as_list
from app.tensor import Tensor
from app.tensor.modes import modes

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

    What the hook returns replaces the gradients of the inputs. Inputs and outputs that are no Tensors, such as lists
    of Tensors, have None in their places.
    """

    def __init__(self, hook: Callable[..., Any]):
        self._hook = hook

    def before(self, layer: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the inputs through an identity whose backward receives their gradients."""
        if modes().tracer is not None or any(isinstance(value, Variable) for value in inputs):
            raise OperatorError(
                f"{type(layer).__name__} has a full backward hook, which sees gradients of eager calls only: call the "
                "layer outside of traced functions and Programs, or register the hook on a Tensor (x.register_hook)"
            )
        call = _this_call.get()[self] = _CallOfLayer(self._hook, layer)
        places = call.inputs = _Tensors.among(inputs)
        tensors = [inputs[place] for place in places.places]
        call.ends = all(tensor.stop_gradient for tensor in tensors)
        return inputs if call.ends else places.filled(as_list(_Leaving.apply(call, *tensors)), inputs)

    def after(self, layer: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Pass the outputs through an identity whose backward receives their gradients."""
        call, listed = _this_call.get().get(self), output if isinstance(output, (tuple, list)) else (output,)
        places = _Tensors.among(listed)
        if call is None or not places.places:
            return None
        call.outputs = places
        marked = places.filled(as_list(_Entering.apply(call, *(listed[place] for place in places.places))), listed)
        if isinstance(output, Tensor):
            return marked[0]
        return output._make(marked) if hasattr(output, "_make") else type(output)(marked)


class _Tensors(NamedTuple):
    """The places of Tensors in a list of values."""

    places: list[int]
    total: int
    """The number of all values."""

    @classmethod
    def among(cls, values: Sequence[Any]) -> _Tensors:
        return cls([place for place, value in enumerate(values) if isinstance(value, Tensor)], len(values))

    def filled(self, tensors: Sequence[Any], others: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Values with these Tensors, and others, or None, elsewhere."""
        found = [None] * self.total if others is None else list(others)
        for place, tensor in zip(self.places, tensors, strict=True):
            found[place] = tensor
        return tuple(found)


class _CallOfLayer:
    """The gradients of one call of a layer, which become known at two points of the backward pass."""

    inputs: _Tensors
    outputs: _Tensors
    ends: bool
    """Whether no input requires a gradient."""

    def __init__(self, hook: Callable[..., Any], layer: Any):
        self.hook, self.layer = hook, layer
        self.of_outputs: tuple[Any, ...] | None = None

    def changed(self, of_inputs: Sequence[Any]) -> tuple[Any, ...]:
        label = f"the full backward hook of {type(self.layer).__name__}"
        if self.of_outputs is None:
            raise OperatorError(
                f"{label}: gradients reach its inputs that did not pass through its output; return what the loss "
                "depends on from forward, as a Tensor or in a tuple, or register the hook on a Tensor (x.register_hook)"
            )
        result = _called(self.hook, self.layer, self.inputs.filled(of_inputs), self.of_outputs)
        if result is None:
            return tuple(of_inputs)
        found = result if isinstance(result, tuple) else (result,)
        if len(found) != self.inputs.total:
            raise OperatorError(f"{label} returned {len(found)} gradients, expected {self.inputs.total}, or None")
        return tuple(found[place] for place in self.inputs.places)


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
        ctx.call.of_outputs = ctx.call.outputs.filled(gradients)
        if ctx.call.ends:
            ctx.call.changed((None,) * len(ctx.call.inputs.places))
        return (None, *gradients)
