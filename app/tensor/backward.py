"""Backward passes of eager values: into the `.grad` of leaves, or as the result of `grad`."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.graph.autodiff import reverse_walk
from app.tensor.modes import set_grad_enabled
from app.tensor.tape import GraphCall, leading_to, reachable
from app.tensor.tensor import Tensor, on_tape


def _walk(
    tensors: Sequence[Tensor],
    starts: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    complete: Callable[[Hashable, Any], Any] = lambda key, gradient: gradient,
    wanted: Container[Hashable] | None = None,
    blocked: Container[Hashable] = (),
) -> dict[Hashable, Any]:
    """Walk back from `tensors`, as far as `wanted` where that is given, on ways around `blocked`.

    Gives the gradients of where the walk ended, as arrays or, with `create_graph`, as Tensors.
    """
    if len(starts) != len(tensors):
        raise OperatorError(f"{_counted(tensors, 'tensor')}, but {_counted(starts, 'gradient')} for them")
    gradients: dict[Hashable, Any] = {}
    with set_grad_enabled(create_graph):
        for tensor, start in zip(tensors, starts, strict=True):
            value = _start(tensor, start, create_graph)
            key = tensor.source
            gradients[key] = gradients[key] + value if key in gradients else value
        nodes = reachable(gradients, blocked)
        if wanted is not None:
            nodes = leading_to(wanted, nodes)
        calls: Iterable[Any] = (GraphCall(node, on_tape) for node in nodes) if create_graph else nodes
        reverse_walk(calls, gradients, complete)
    if not (retain_graph or create_graph):
        for node in nodes:
            node.release()
    return gradients


def _start(tensor: Tensor, start: Any, create_graph: bool) -> Any:
    if tensor.stop_gradient:
        raise OperatorError(
            "backward from a Tensor with stop_gradient=True: nothing that it was computed from wants a gradient"
        )
    if start is None:
        return on_tape(np.ones_like(tensor._array), None) if create_graph else np.ones_like(tensor._array)
    shape = list(np.shape(start))
    if shape != tensor.shape:
        raise ShapeError(f"the gradient of a Tensor of shape {tensor.shape} cannot have shape {shape}")
    if create_graph and isinstance(start, Tensor):
        return start if start.dtype == tensor.dtype else start.astype(tensor.dtype)
    array = np.array(start, dtype=tensor._array.dtype)
    return Tensor(array) if create_graph else array


def _counted(values: Sequence[Any], what: str) -> str:
    return f"{len(values)} {what}" if len(values) == 1 else f"{len(values)} {what}s"


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of every leaf that wants one."""
    tensors = _listed(tensors)
    starts = [None] * len(tensors) if grad_tensors is None else _listed(grad_tensors)
    leaves = _walk(tensors, starts, retain_graph, False)
    for leaf, gradient in leaves.items():
        if isinstance(leaf, Tensor):
            gradient = np.asarray(gradient)
            leaf.grad = Tensor(gradient if leaf.grad is None else leaf.grad._array + gradient)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Any = None,
) -> list[Tensor | None]:
    """The gradients of the sum of `outputs` with respect to `inputs`; no `.grad` is touched.

    With `create_graph` the result can be differentiated again.
    """
    outputs, inputs = _listed(outputs), _listed(inputs)
    starts = [None] * len(outputs) if grad_outputs is None else _listed(grad_outputs)
    wanted = {tensor.source for tensor in inputs}
    blocked = {tensor.source for tensor in _listed(no_grad_vars or [])}
    found: dict[Hashable, Any] = {}

    def complete(key: Hashable, gradient: Any) -> Any:
        if key in wanted:
            found[key] = gradient
        return None if key in blocked else gradient

    keep = create_graph if retain_graph is None else retain_graph
    ends = _walk(outputs, starts, keep, create_graph, complete, wanted, blocked)
    found.update((key, gradient) for key, gradient in ends.items() if key in wanted)
    results: list[Tensor | None] = []
    for position, tensor in enumerate(inputs):
        gradient = found.get(tensor.source)
        if gradient is None and not allow_unused:
            raise OperatorError(
                f"input {position} of grad, of shape {tensor.shape}, was not used for the outputs; "
                "allow_unused=True gives None for it"
            )
        results.append(gradient if gradient is None or isinstance(gradient, Tensor) else Tensor(np.asarray(gradient)))
    return results


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
