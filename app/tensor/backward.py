"""Backward passes of eager values: into the `.grad` of leaves, or as the result of `grad`.

Values are known here by what they hold: an array, the place on the tape that it came from, and the class of results.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from app.errors import GradientError, OperatorError, ShapeError, silent_end
from app.graph.autodiff import reverse_walk
from app.listed import as_list
from app.tensor.modes import modes, set_modes
from app.tensor.tape import GraphCall, Hooks, Node, leading_to, on_tape, reachable
from app.tensor.versions import note_change

Complete = Callable[[Any, Any], Any]


def _walk(
    tensors: Sequence[Any],
    starts: Sequence[Any],
    retain_graph: bool,
    create_graph: bool,
    complete: Complete | None = None,
    wanted: Container[Hashable] | None = None,
    blocked: Container[Hashable] = (),
) -> dict[Any, Any]:
    """Walk back from `tensors`, as far as `wanted` where that is given, on ways around `blocked`.

    Gives the gradients of where the walk ended, as arrays or, with `create_graph`, as Tensors.
    """
    if len(starts) != len(tensors):
        raise OperatorError(f"{_counted(tensors, 'tensor')}, but {_counted(starts, 'gradient')} for them")
    kind = tensors[0].result_class
    gradients: dict[Any, Any] = {}
    outside = modes()
    set_modes(outside.recorded if create_graph else outside.unrecorded)
    try:
        for place, tensor in enumerate(tensors):
            value = _start(tensor, starts[place], create_graph, place)
            key = tensor.source
            gradients[key] = gradients[key] + value if key in gradients else value
        nodes = reachable(gradients, blocked)
        if wanted is not None:
            nodes = leading_to(wanted, nodes)
        for node in nodes:
            if node.hooks is not None:
                complete = partial(_after_hooks, kind, complete)
                break
        calls: Iterable[Any] = nodes
        if create_graph:
            calls = [GraphCall(node, partial(on_tape, kind)) for node in nodes]
        reverse_walk(calls, gradients, complete)
    finally:
        set_modes(outside)
    if not (retain_graph or create_graph):
        for node in nodes:
            node.release()
    return gradients


def _start(tensor: Any, start: Any, create_graph: bool, place: int) -> Any:
    array = tensor._array
    if tensor.stop_gradient:
        raise GradientError(
            f"backward from a Tensor with stop_gradient=True (element {place} of tensors does not require grad and "
            "does not have a grad_fn): nothing that it was computed from wants a gradient"
        )
    if start is None:
        if tensor.backward_is_strict and array.size != 1:
            raise OperatorError(
                f"backward from a Tensor of shape {list(array.shape)} without a gradient for it: grad can be "
                "implicitly created only for scalar outputs; sum it, or pass the gradient"
            )
        ones = np.ones(array.shape, array.dtype)
        return tensor.result_class(ones) if create_graph else ones
    is_tensor = hasattr(start, "_array")
    given = start._array if is_tensor else np.array(start)
    if given.shape != array.shape:
        raise ShapeError(f"the gradient of a Tensor of shape {list(array.shape)} cannot have shape {list(given.shape)}")
    if given.dtype is not array.dtype:
        start = start.astype(tensor.dtype) if is_tensor and create_graph else start
        given = given.astype(array.dtype, copy=False)
    if create_graph:
        return start if is_tensor else tensor.result_class(given)
    return given


def _counted(values: Sequence[Any], what: str) -> str:
    return f"{len(values)} {what}" if len(values) == 1 else f"{len(values)} {what}s"


# Hooks


def _after_hooks(kind: Any, complete: Complete | None, key: tuple[Node, int], gradient: Any) -> Any:
    node, slot = key
    hooks = None if node.hooks is None else node.hooks.get(slot)
    if hooks:
        gradient = run_hooks(hooks, gradient, kind)
    return gradient if complete is None else complete(key, gradient)


def run_hooks(hooks: Hooks, gradient: Any, kind: Any) -> Any:
    """The gradient after each function has seen it, as a Tensor, and may have returned another one."""
    arrays = not hasattr(gradient, "_array")
    tensor = kind(np.asarray(gradient)) if arrays else gradient
    for hook in list(hooks.values()):
        try:
            changed = hook(tensor)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise silent_end(f"hook {getattr(hook, '__name__', hook)}", error) from error
        tensor = tensor if changed is None else changed
    return tensor._array if arrays else tensor


# What arrives at leaves


def _holders(array: np.ndarray) -> int:
    return sys.getrefcount(array)


def _alone() -> int:
    """What `_holders` counts for an array that nobody else holds, with this Python."""
    gradients = {0: np.zeros(1)}
    gradient = gradients.pop(0)
    return _holders(gradient)


_ALONE = _alone()


def _deliver(leaf: Any, gradients: dict[Any, Any]) -> None:
    """Add a gradient to that of a leaf; the leaf's own array is changed in place, and shared with nobody."""
    gradient = gradients.pop(leaf)
    if leaf._hooks:
        gradient = run_hooks(leaf._hooks, gradient, leaf.result_class)
    if not isinstance(gradient, np.ndarray):
        if hasattr(gradient, "_array"):  # on the tape: made to be differentiated again
            with _adding:
                leaf.grad = gradient.clone() if leaf.grad is None else leaf.grad + gradient
            return
        gradient = np.asarray(gradient)
    dtype = leaf._array.dtype
    if gradient.dtype is not dtype and dtype.kind == "f":
        gradient = gradient.astype(dtype, copy=False)
    alone = gradient.base is None and gradient.flags.writeable and _holders(gradient) <= _ALONE
    with _adding:
        before = leaf.grad
        if before is None:
            leaf.grad = leaf.result_class(gradient if alone else gradient.copy(), leaf.grad_stops)
        elif before._node is None and before._array.dtype is gradient.dtype and before._array.flags.writeable:
            array = before._array
            np.add(array, gradient, array)
            note_change(array)
        else:
            leaf.grad = leaf.result_class(before._array + gradient, leaf.grad_stops)


_adding = threading.RLock()
"""Held while a gradient is added to that of a leaf, as other threads may have gradients for the same leaf."""


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = False,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of every leaf that wants one, or of `inputs` alone.

    With `create_graph` these can be differentiated again. From a Tensor with `stop_gradient=True` nothing flows.
    """
    tensors = as_list(tensors)
    starts = [None] * len(tensors) if grad_tensors is None else as_list(grad_tensors)
    run_backward(tensors, starts, retain_graph, create_graph, inputs)


def run_backward(
    tensors: Sequence[Any], starts: Sequence[Any], retain_graph: bool | None, create_graph: bool, inputs: Any = None
) -> None:
    """`backward`, of lists."""
    if not _some_want_gradients(tensors):
        return
    waiting: list[Callable[[], None]] = []
    outside = _waiting.set(waiting)
    try:
        _run_backward(tensors, starts, retain_graph, create_graph, inputs)
        while waiting:
            waiting.pop()()
    finally:
        _waiting.reset(outside)


def afterwards(function: Callable[[], None]) -> None:
    """Have a function called, once, when the backward pass that now runs has brought all gradients to their leaves."""
    waiting = _waiting.get(None)
    if waiting is None:
        raise GradientError("this hook has to wait until backward() has set every .grad, which grad() never does")
    if function not in waiting:
        waiting.append(function)


_waiting: ContextVar[list[Callable[[], None]]] = ContextVar("waiting")
"""What is to be called after the innermost backward pass that this thread runs."""


def _run_backward(
    tensors: Sequence[Any], starts: Sequence[Any], retain_graph: bool | None, create_graph: bool, inputs: Any
) -> None:
    if inputs is not None:
        inputs = as_list(inputs)
        for tensor, gradient in zip(
            inputs, grad(tensors, inputs, starts, retain_graph, create_graph, allow_unused=True), strict=True
        ):
            if gradient is not None:
                _deliver(tensor, {tensor: gradient if create_graph else gradient._array})
        return
    ends = _walk(tensors, starts, bool(retain_graph), create_graph)
    for key in list(ends):
        if key.__class__ is not tuple:
            _deliver(key, ends)


def _some_want_gradients(tensors: Sequence[Any]) -> bool:
    """Whether there is anything to do; where there is not, that is an error for strict classes of Tensors."""
    for tensor in tensors:
        if not tensor.stop_gradient or tensor.backward_is_strict:
            return True
    warnings.warn(
        "backward from a Tensor with stop_gradient=True does nothing: nothing that it was computed from wants "
        "a gradient",
        stacklevel=4,
    )
    return False


_UNUSED = (
    "input {position} of grad, of shape {shape}, was not used for the outputs. Set allow_unused=True to get None for it"
)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Any = None,
) -> list[Any]:
    """The gradients of the sum of `outputs` with respect to `inputs`; no `.grad` is touched.

    With `create_graph` the result can be differentiated again.
    """
    outputs, inputs = as_list(outputs), as_list(inputs)
    if not outputs or not inputs:
        raise GradientError("inputs and outputs of a gradient cannot be empty: name the Tensors that it is for")
    starts = [None] * len(outputs) if grad_outputs is None else as_list(grad_outputs)
    tracer = recording.tracer
    if tracer is not None:
        made = tracer.grad(outputs, inputs, starts, create_graph, as_list(no_grad_vars or []))
        for position, gradient in enumerate(made):
            if gradient is None and not allow_unused:
                raise GradientError(_UNUSED.format(position=position, shape=list(inputs[position].shape)))
        return made
    wanted = {tensor.source for tensor in inputs}
    blocked = {tensor.source for tensor in as_list(no_grad_vars or [])}
    found: dict[Any, Any] = {}

    def complete(key: Any, gradient: Any) -> Any:
        if key in wanted:
            found[key] = gradient
        return None if key in blocked else gradient

    keep = create_graph if retain_graph is None else retain_graph
    ends = _walk(outputs, starts, keep, create_graph, complete, wanted, blocked)
    for key, gradient in ends.items():
        if key in wanted:
            hooks = (key[0].hooks or {}).get(key[1]) if type(key) is tuple else key._hooks
            found[key] = run_hooks(hooks, gradient, outputs[0].result_class) if hooks else gradient
    results: list[Any] = []
    for position, tensor in enumerate(inputs):
        gradient = found.get(tensor.source)
        if gradient is None and not allow_unused:
            raise GradientError(_UNUSED.format(position=position, shape=list(tensor._array.shape)))
        if gradient is not None and not hasattr(gradient, "_array"):
            gradient = tensor.result_class(np.array(gradient))
        results.append(gradient)
    return results
