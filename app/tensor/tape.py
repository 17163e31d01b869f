"""The record of an eager operator, and the way back through such records."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.ops.definition import OpDef
from app.ops.size import Shape
from app.tensor.versions import check_unchanged, clock, latest, owner_of

Hooks = dict[Any, Callable[[Any], Any]]
"""Functions that see a gradient when it is complete, by the handle that removes them."""


class Node:
    """One operator that ran: where its inputs came from, and those values that its gradient rules read.

    It holds arrays rather than Tensors, so a result does not keep itself alive. `sources` are the nodes, or for
    values that no operator made the Tensors themselves, that gradients flow on to.
    """

    __slots__ = (
        "__weakref__",
        "_inputs",
        "_outputs",
        "attributes",
        "definition",
        "hooks",
        "input_specs",
        "needs",
        "order",
        "output_specs",
        "released",
        "sources",
    )

    def __init__(
        self,
        definition: OpDef,
        sources: Sequence[Any],
        arrays: Sequence[Any],
        outputs: Sequence[np.ndarray],
        attributes: Mapping[str, Any],
        needs: Sequence[bool],
    ):
        self.order = next(clock)
        self.definition = definition
        self.attributes = attributes
        self.needs = needs
        self.sources = sources
        self.released = False
        self.hooks: dict[int, Hooks] | None = None
        """For each output by its number."""
        input_specs: list[Any] = []
        for array in arrays:
            input_specs.append(None if array is None else (array.shape, array.dtype))
        self.input_specs = input_specs
        """Shape and type of each input, None for one that is no value."""
        output_specs: list[Any] = []
        for array in outputs:
            output_specs.append((array.shape, array.dtype))
        self.output_specs = output_specs
        """Shape and type of each output."""
        reads = definition.reads
        first = reads.inputs_from
        if first is not None:
            self._inputs = [*[None] * first, *arrays[first:]] if first else list(arrays)
        else:
            self._inputs = [a if i in reads.inputs else None for i, a in enumerate(arrays)] if reads.inputs else []
        self._outputs = [a if j in reads.outputs else None for j, a in enumerate(outputs)] if reads.outputs else []

    @property
    def input_keys(self) -> Sequence[Any]:
        return self.sources

    @property
    def output_keys(self) -> Sequence[Any]:
        count = len(self.output_specs)
        return ((self, 0),) if count == 1 else [(self, j) for j in range(count)]

    def input(self, index: int) -> Any:
        if self.released:
            self.check_alive()
        array = self._inputs[index]
        if latest.moment > self.order:
            check_unchanged(array, self.order, f"{self.definition.label}: its input {index}")
        return array

    def output(self, index: int) -> Any:
        if self.released:
            self.check_alive()
        array = self._outputs[index]
        if latest.moment > self.order:
            check_unchanged(array, self.order, f"{self.definition.label}: its output {index}")
        return array

    def like(self, index: int) -> Any:
        shape, dtype = self.input_specs[index] or ((), np.float32)
        return np.ndarray(shape, dtype, _ZEROS, strides=(0,) * len(shape))

    def input_shape(self, index: int) -> tuple[int, ...]:
        known = self.input_specs[index]
        return () if known is None else known[0]

    def output_shape(self, index: int) -> Shape:
        return self.output_specs[index][0]

    def zeros(self, index: int) -> np.ndarray:
        return np.zeros(*self.output_specs[index])

    def release(self) -> None:
        """Let go of the saved values; a second backward pass through this node then says so."""
        self._inputs, self._outputs, self.released = [], [], True

    def check_alive(self) -> None:
        if self.released:
            raise OperatorError(
                f"{self.definition.label}: the values saved for its gradient were freed by an earlier backward(). "
                "Trying to backward through the graph a second time? Specify retain_graph=True the first time"
            )

    def keep_own(self, array: np.ndarray) -> None:
        """Copy what was saved in the memory of an array, which is about to be overwritten."""
        owner = owner_of(array)
        for saved in (self._inputs, self._outputs):
            saved[:] = [a.copy() if isinstance(a, np.ndarray) and owner_of(a) is owner else a for a in saved]


_ZEROS = bytes(16)
"""What values that only lend their shape and type read as their numbers."""


def on_tape(kind: Callable[..., Any], array: Any, source: Any) -> Any:
    """A Tensor over an array that stands where `source` says; with None, one without gradient."""
    place = type(source) is tuple
    if source is not None and not place and source._array is array:
        return source
    tensor = kind(np.asarray(array), source is None)
    if place:
        tensor._node, tensor._slot = source
    return tensor


class GraphCall:
    """A node whose saved values come back as Tensors on the tape, so that gradients can be differentiated again."""

    def __init__(self, node: Node, wrap: Any):
        self.node = node
        self.definition = node.definition
        self.attributes = node.attributes
        self.needs = node.needs
        self.input_keys = node.input_keys
        self.output_keys = node.output_keys
        self.input_shape = node.input_shape
        self.output_shape = node.output_shape
        self.input_specs = node.input_specs
        self.output_specs = node.output_specs
        self._wrap = wrap

    def input(self, index: int) -> Any:
        return self._wrap(self.node.input(index), self.node.sources[index])

    def output(self, index: int) -> Any:
        return self._wrap(self.node.output(index), (self.node, index))

    def like(self, index: int) -> Any:
        return self._wrap(self.node.like(index), None)

    def zeros(self, index: int) -> Any:
        return self._wrap(self.node.zeros(index), None)


_order = attrgetter("order")


def reachable(sources: Iterable[Any], blocked: Container[Any] = ()) -> list[Node]:
    """The nodes that gradients can reach from `sources` on ways around `blocked`, the youngest first."""
    found: set[Node] = set()
    waiting = list(sources)
    while waiting:
        source = waiting.pop()
        if source.__class__ is tuple and not (blocked and source in blocked):
            node = source[0]
            if node not in found:
                found.add(node)
                waiting += node.sources
    return sorted(found, key=_order, reverse=True)


def leading_to(targets: Container[Any], nodes: Sequence[Node]) -> list[Node]:
    """Those of `nodes`, the youngest first, from which gradients can flow on to one of `targets`."""
    found: set[Node] = set()
    for node in reversed(nodes):
        if any(source in targets or (type(source) is tuple and source[0] in found) for source in node.sources):
            found.add(node)
    return [node for node in nodes if node in found]
