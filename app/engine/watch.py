"""Running operators one by one and recording their inputs and outputs; slow, for finding errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.engine.reference import Values
from app.errors import AppError
from app.graph.autodiff import Recorded, reverse_walk
from app.graph.interpret import run_operator
from app.graph.program import Operator, Program
from app.graph.scope import Scope
from app.ops.definition import OpDef
from app.ops.spec import UNKNOWN
from app.ops.values import Gradient
from app.tensor.modes import Modes, modes, reset_modes, set_modes
from app.tensor.tape import Node, reachable
from app.tensor.tensor import Tensor, to_tensor

NamedArrays = Sequence[tuple[str, np.ndarray]]


class OperatorRun(NamedTuple):
    """An operator that ran, with its inputs and outputs by name."""

    operator: str
    inputs: NamedArrays
    outputs: NamedArrays


def is_finite(array: np.ndarray) -> bool:
    """Whether an array contains neither NaN nor infinity."""
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def first_nonfinite(runs: Iterable[OperatorRun]) -> OperatorRun | None:
    """The first operator that turned finite inputs into NaN or infinity."""
    for run in runs:
        if all(is_finite(a) for _, a in run.inputs) and not all(is_finite(a) for _, a in run.outputs):
            return run
    return None


# Programs


def watch_program(program: Program, feed: Mapping[str, np.ndarray], scope: Scope) -> Iterator[OperatorRun]:
    """Run a Program as the reference engine does; yields each operator after it has run.

    If an operator fails after an earlier one returned an unexpected shape, the error names the earlier one first.
    """
    block = program.global_block()
    values, shape_error = Values(block, dict(feed), scope), ""
    rows = next((value.shape[0] for value in feed.values() if value.ndim), UNKNOWN)
    for operator in block.ops:
        read = [(name, np.asarray(values[name])) for name in operator.inputs if name is not None]
        try:
            run_operator(operator, values)
        except AppError as error:
            raise type(error)(f"{shape_error}{error}") from error
        results = [(name, np.asarray(values[name])) for name in operator.outputs]
        shape_error = shape_error or _unexpected_shape(program, operator, results, rows)
        yield OperatorRun(_labelled(operator), read, results)


def _labelled(operator: Operator) -> str:
    """The operator in messages, with the user's line that applied it, as in the backward of a PyLayer."""
    label = operator.definition.label
    return f"{label} ({operator.place})" if operator.place and not operator.definition.where else label


def _unexpected_shape(program: Program, operator: Operator, results: NamedArrays, rows: int) -> str:
    """A message if a result has another shape than declared, with unknown sizes equal to the batch size; '' if not."""
    for name, array in results:
        declared = program.global_block().var(name).shape
        if array.shape != tuple(rows if size == UNKNOWN else size for size in declared):
            return (
                f"{operator.definition.label} returned shape {list(array.shape)} for a batch of {rows}, expected "
                f"{list(declared)}; then "
            )
    return ""


# Tensors


def watch_tensors(
    loss_of: Callable[[Tensor], Tensor], array: np.ndarray, names: Mapping[int, str], backward: bool
) -> list[OperatorRun]:
    """Compute a loss from a Tensor of an array; returns the operators that ran, and their gradients with `backward`.

    Only operators that a gradient can flow through are recorded. `names` has the names of Tensors by their ids. No
    `.grad` changes.
    """
    nodes: list[tuple[Node, Sequence[np.ndarray], Sequence[np.ndarray]]] = []

    class Watched(Node):
        """A record that is kept with the inputs and outputs of the operator."""

        __slots__ = ()

        def __init__(self, definition: OpDef, sources: Any, arrays: Any, outputs: Any, attributes: Any, needs: Any):
            super().__init__(definition, sources, arrays, outputs, attributes, needs)
            nodes.append((self, arrays, outputs))

    outside = set_modes(Modes(True, None, Watched))
    try:
        loss = loss_of(to_tensor(array))
    finally:
        reset_modes(outside)
    runs = [_forward_run(*node, names) for node in nodes]
    if backward:
        gradients: dict[Any, Gradient] = {loss.source: np.ones_like(loss._array)}
        calls: list[Any] = [_WatchedNode(node, runs) for node in reachable(gradients)]
        outside = set_modes(modes().unrecorded)
        try:
            reverse_walk(calls, gradients)
        finally:
            reset_modes(outside)
    return runs


def _forward_run(
    node: Node, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray], names: Mapping[int, str]
) -> OperatorRun:
    definition = node.definition
    read = []
    for place, source in enumerate(node.sources):
        if source is not None:
            name = _name(definition.inputs, place)
            read.append((name if isinstance(source, tuple) else names.get(id(source), name), arrays[place]))
    return OperatorRun(definition.label, read, [(_name(definition.outputs, j), a) for j, a in enumerate(outputs)])


class _WatchedNode:
    """A node for the reverse walk that records the gradients of its outputs and inputs."""

    def __init__(self, node: Node, runs: list[OperatorRun]):
        self._node, self._runs = node, runs
        self.definition: Any = self  # whose `differentiate` the walk calls
        self.attributes, self.needs = node.attributes, node.needs
        self.input_keys, self.output_keys = node.input_keys, node.output_keys

    def differentiate(self, call: Recorded, douts: Sequence[Gradient]) -> Sequence[Gradient]:
        definition: OpDef = self._node.definition
        gradients = definition.differentiate(self._node, douts)
        read = [("d" + _name(definition.outputs, i), np.asarray(g)) for i, g in enumerate(douts) if g is not None]
        results = [("d" + _name(definition.inputs, i), np.asarray(g)) for i, g in enumerate(gradients) if g is not None]
        self._runs.append(OperatorRun(f"the gradient of {definition.label}", read, results))
        return gradients


def _name(names: Sequence[str], place: int) -> str:
    return names[place] if place < len(names) else f"{place}"
