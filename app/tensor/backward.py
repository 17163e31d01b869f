"""Backward passes of Tensors: `backward` adds to the `.grad` of leaves, `grad` returns gradients.

Without `create_graph`, gradients are arrays during the pass; with it they are Tensors on the tape.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from app.errors import (
    CustomOperatorError,
    DtypeError,
    GradientArgumentError,
    GradientError,
    ShapeError,
    silent_end,
)
from app.graph.autodiff import Recorded, check_dtype_of_gradient, reverse_walk
from app.listed import as_list
from app.ops.values import Gradient
from app.reading import place_of
from app.tensor import tape
from app.tensor.modes import modes, reset_modes, set_modes
from app.tensor.tape import DifferentiableNode, Hook, Hooks, Node, leading_to, note_change, reachable

if TYPE_CHECKING:
    import numpy.typing as npt

    from app.tensor.tape import Key
    from app.tensor.tensor import Tensor

Complete: TypeAlias = "Callable[[Any, Gradient], Gradient]"
Start: TypeAlias = "Tensor | npt.ArrayLike | None"
"""The gradient of an output that a caller passes; None stands for ones."""


def _walk(
    tensors: Sequence[Tensor],
    starts: Sequence[Start],
    retain_graph: bool,
    create_graph: bool,
    complete: Complete | None = None,
    targets: Container[Key] | None = None,
    blocked: Container[Key] = (),
) -> dict[Any, Gradient]:
    """Walk back from `tensors`, but not through `blocked`; with `wanted`, only through nodes that lead to these keys.

    Returns the gradients of the values where the walk ended, by their keys.
    """
    if len(starts) != len(tensors):
        raise GradientArgumentError(f"{_counted(tensors, 'tensor')}, but {_counted(starts, 'gradient')} for them")
    gradients: dict[Any, Gradient] = {}
    outside = set_modes(modes().recorded if create_graph else modes().unrecorded)
    try:
        for place, tensor in enumerate(tensors):
            value = _start(tensor, starts[place], create_graph, place)
            key = tensor.source
            gradients[key] = gradients[key] + value if key in gradients else value
        nodes = reachable(gradients, blocked)
        if targets is not None:
            nodes = leading_to(targets, nodes)
        for node in nodes:
            if node.hooks is not None:
                complete = partial(_after_hooks, complete)
                break
        calls: Iterable[Recorded] = [DifferentiableNode(node) for node in nodes] if create_graph else nodes
        reverse_walk(calls, gradients, complete)
    finally:
        reset_modes(outside)
    if not (retain_graph or create_graph):
        for node in nodes:
            node.release()
    return gradients


def _start(tensor: Tensor, start: Any, create_graph: bool, place: int) -> Gradient:
    array = tensor._array
    if tensor.stop_gradient:
        raise GradientError(
            f"backward from a Tensor with stop_gradient=True (element {place} of tensors does not require grad and "
            "does not have a grad_fn): nothing that it was computed from requires a gradient"
        )
    if start is None:
        ones = np.ones(array.shape, array.dtype)
        return tape.new_tensor(ones) if create_graph else ones
    is_tensor = hasattr(start, "_array")
    start_array = start._array if is_tensor else np.array(start)
    if start_array.shape != array.shape:
        raise ShapeError(
            f"the gradient of a Tensor of shape {list(array.shape)} cannot have shape {list(start_array.shape)}"
        )
    if start_array.dtype is not array.dtype:
        start = start.astype(tensor.dtype) if is_tensor and create_graph else start
        start_array = start_array.astype(array.dtype, copy=False)
    if create_graph:
        return start if is_tensor else tape.new_tensor(start_array)
    return start_array


def _counted(values: Sequence[object], what: str) -> str:
    return f"{len(values)} {what}" if len(values) == 1 else f"{len(values)} {what}s"


# Hooks


def _after_hooks(complete: Complete | None, key: tuple[Node, int], gradient: Gradient) -> Gradient:
    node, slot = key
    hooks = None if node.hooks is None else node.hooks.get(slot)
    if hooks:
        gradient = run_hooks(hooks, gradient)
    return gradient if complete is None else complete(key, gradient)


def run_hooks(hooks: Hooks, gradient: Gradient) -> Gradient:
    """Call the hooks with a gradient as a Tensor, one after the other; returns the gradient after all of them."""
    arrays = not hasattr(gradient, "_array")
    tensor = tape.new_tensor(np.asarray(gradient)) if arrays else gradient
    for hook in list(hooks.values()):
        try:
            changed = hook(tensor)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise silent_end(f"hook {getattr(hook, '__name__', hook)}", error) from error
        if changed is not None:
            _check_hook(hook, tensor, changed)
            tensor = changed
    return tensor._array if arrays else tensor


def _check_hook(hook: Hook, gradient: Tensor, changed: Any) -> None:
    """Raise an error if the value that a hook returned cannot replace the gradient."""
    name = getattr(hook, "__qualname__", type(hook).__name__)
    place = place_of(hook)
    label = f"hook {name!r} ({place})" if place else f"hook {name!r}"
    if not hasattr(changed, "_array"):
        raise CustomOperatorError(f"{label} returned a {type(changed).__name__}, expected a Tensor, or None")
    shape, new_shape = list(gradient._array.shape), list(changed._array.shape)
    if new_shape != shape:
        raise ShapeError(f"{label} has changed the size of a gradient of shape {shape}: it returned shape {new_shape}")
    dtype, other = gradient._array.dtype, changed._array.dtype
    if other != dtype:
        raise DtypeError(f"{label} has changed the type of a gradient of {dtype}: it returned {other}; use .astype")


# Gradients of leaves


def _add_to_leaf(leaf: Tensor, gradients: dict[Any, Gradient]) -> None:
    """Remove the gradient of a leaf from `gradients`, and add it to the `.grad` of the leaf, in place if it has one."""
    gradient = gradients.pop(leaf)
    if leaf.stop_gradient and not leaf.is_given_gradients_when_frozen:
        return
    dtype = leaf._array.dtype
    if dtype.kind != "f":
        check_dtype_of_gradient(f"a Tensor of shape {list(leaf._array.shape)}", dtype)
    grad = leaf.grad
    if grad is not None and getattr(getattr(grad, "_array", None), "shape", None) != leaf._array.shape:
        raise ShapeError(
            f"a gradient cannot be added to the .grad of a Tensor of shape {list(leaf._array.shape)}, which was set to "
            f"a {type(grad).__name__} of shape {list(np.shape(grad))}; set it to a Tensor of that shape, or to None"
        )
    if leaf._hooks:
        gradient = run_hooks(leaf._hooks, gradient)
    if not isinstance(gradient, np.ndarray):
        if hasattr(gradient, "_array"):  # a Tensor on the tape, with create_graph
            with _adding:
                leaf.grad = gradient.clone() if leaf.grad is None else leaf.grad + gradient
            return
        gradient = np.asarray(gradient)
    if gradient.dtype is not dtype:
        gradient = gradient.astype(dtype, copy=False)
    _begin_adding()
    try:
        before = leaf.grad
        if before is None:
            leaf.grad = tape.new_tensor(gradient.copy(), False)  # others may hold the array, too
        elif before._node is None and before._array.dtype is gradient.dtype and before._array.flags.writeable:
            array = before._array
            np.add(array, gradient, array)
            note_change(array)
        else:
            leaf.grad = tape.new_tensor(np.asarray(before._array + gradient), False)
    finally:
        _end_adding()


_adding = threading.RLock()
"""Held while a gradient is added to a `.grad`, because other threads may have gradients for the same leaf."""
_begin_adding, _end_adding = _adding.acquire, _adding.release  # twice as fast as `with`


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Start | Sequence[Start] = None,
    retain_graph: bool | None = False,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of every leaf that requires one, or of `inputs` only.

    With `create_graph`, the gradients can be differentiated again. Tensors with `stop_gradient=True` have no gradient.
    """
    tensors = as_list(tensors)
    starts = [None] * len(tensors) if grad_tensors is None else as_list(grad_tensors)
    run_backward(tensors, starts, retain_graph, create_graph, inputs)


def run_backward(
    tensors: Sequence[Tensor],
    starts: Sequence[Start],
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Any = None,
) -> None:
    """`backward` for lists."""
    tracer = modes().tracer
    if tracer is not None:
        tracer.backward(tensors, starts, inputs)
        return
    if not _any_requires_gradient(tensors):
        return
    if inputs is not None:
        inputs = _tensors_among(inputs, "inputs")
        gradients = _gradients_of(tensors, inputs, starts, bool(retain_graph), create_graph)
        for tensor in inputs:
            gradient = gradients.get(tensor.source)
            if gradient is not None:
                _add_to_leaf(tensor, {tensor: gradient if create_graph else np.array(gradient)})
        return
    ends = _walk(tensors, starts, bool(retain_graph), create_graph)
    for key in list(ends):
        if key.__class__ is not tuple:
            _add_to_leaf(key, ends)


def _any_requires_gradient(tensors: Sequence[Tensor]) -> bool:
    """Whether a Tensor requires a gradient; if not, warn."""
    for tensor in tensors:
        if not tensor.stop_gradient:
            return True
    warnings.warn(
        "backward from a Tensor with stop_gradient=True does nothing: nothing that it was computed from requires "
        "a gradient; make an input with stop_gradient=False",
        stacklevel=4,
    )
    return False


_UNUSED = (
    "input {position} of grad, of shape {shape}, was not used for the outputs. Set allow_unused=True to get None for it"
)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Start | Sequence[Start] = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
    no_grad_vars: Tensor | Iterable[Tensor] | None = None,
) -> list[Any]:
    """The gradients of the sum of `outputs` with respect to `inputs`; no `.grad` changes.

    With `create_graph`, the gradients can be differentiated again.
    """
    outputs, inputs = _tensors_among(outputs, "outputs"), _tensors_among(inputs, "inputs")
    starts = [None] * len(outputs) if grad_outputs is None else as_list(grad_outputs)
    around = [] if no_grad_vars is None else no_grad_vars
    around = list(around) if isinstance(around, set) else as_list(around)
    tracer = modes().tracer
    if tracer is not None:
        traced: list[Gradient] = tracer.grad(outputs, inputs, starts, create_graph, around)
        for position, gradient in enumerate(traced):
            if gradient is None and not allow_unused:
                raise GradientError(_UNUSED.format(position=position, shape=list(inputs[position].shape)))
        return traced
    blocked = _tensors_among(around, "no_grad_vars") if around else []
    keep = create_graph if retain_graph is None else retain_graph
    gradients = _gradients_of(outputs, inputs, starts, keep, create_graph, blocked)
    results: list[Gradient] = []
    for position, tensor in enumerate(inputs):
        gradient = gradients.get(tensor.source)
        if gradient is None and not allow_unused:
            raise GradientError(_UNUSED.format(position=position, shape=list(tensor._array.shape)))
        if gradient is not None:
            check_dtype_of_gradient(f"input {position} of grad", tensor._array.dtype)
        if gradient is not None and not hasattr(gradient, "_array"):
            gradient = tape.new_tensor(np.array(gradient))
        elif gradient is not None and gradient.stop_gradient:
            gradient = tape.new_tensor(gradient._array.copy(), False)
        results.append(gradient)
    return results


def _gradients_of(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    starts: Sequence[Start],
    retain_graph: bool,
    create_graph: bool,
    blocked: Sequence[Tensor] = (),
) -> dict[Any, Gradient]:
    """The gradients of `inputs` by their keys, before the hooks of leaves."""
    targets, around = {tensor.source for tensor in inputs}, {tensor.source for tensor in blocked}
    gradients: dict[Any, Gradient] = {}

    def complete(key: Key, gradient: Gradient) -> Gradient:
        if key in targets:
            gradients[key] = gradient
        return None if key in around else gradient

    ends = _walk(outputs, starts, retain_graph, create_graph, complete, targets, around)
    for key, gradient in ends.items():
        if key in targets:
            hooks = key[0].hooks.get(key[1]) if type(key) is tuple and key[0].hooks else None
            gradients[key] = run_hooks(hooks, gradient) if hooks else gradient
    return gradients


def _tensors_among(argument: Any, what: str) -> list[Any]:
    """The argument `inputs` or `outputs` of a call as a checked list of Tensors."""
    if argument is None:
        raise GradientArgumentError(f"grad: {what} should not be None: pass the Tensors that the gradient is for")
    listed = as_list(argument)
    if not listed:
        raise GradientArgumentError(f"grad: {what} cannot be empty: pass the Tensors that the gradient is for")
    mark = (
        "_array" if modes().tracer is None else "apply_operator"
    )  # while a function is traced, Variables replace Tensors
    for place, value in enumerate(listed):
        if not hasattr(value, mark):
            of_program = "; write opsmith.static.gradients" if hasattr(value, "apply_operator") else ""
            raise GradientArgumentError(
                f"grad: elements of {what} must be Tensors, but element {place} is a {type(value).__name__}{of_program}"
            )
    return listed
