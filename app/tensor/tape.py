"""The record of an eager operator, and the backward pass over such records."""

from __future__ import annotations

import itertools
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.ops.definition import OpDef

_order = itertools.count()


class Node:
    """One operator that ran: where its inputs came from, and those values that its gradient rules read.

    It holds arrays rather than Tensors, so a result does not keep itself alive. `sources` are the nodes, or for
    values that no operator made the Tensors themselves, that gradients flow on to.
    """

    __slots__ = (
        "__weakref__",
        "_inputs",
        "_outputs",
        "_shapes",
        "attributes",
        "definition",
        "needs",
        "order",
        "released",
        "sources",
    )

    def __init__(
        self,
        definition: OpDef,
        inputs: Sequence[Any],
        arrays: Sequence[Any],
        outputs: Sequence[np.ndarray],
        attributes: Mapping[str, Any],
        needs: Sequence[bool],
    ):
        self.order = next(_order)
        self.definition = definition
        self.attributes = attributes
        self.needs = needs
        self.sources = [x.source if n else None for x, n in zip(inputs, needs, strict=True)]
        self._inputs = [a if definition.uses_value("input", i) else None for i, a in enumerate(arrays)]
        self._outputs = [a if definition.uses_value("output", j) else None for j, a in enumerate(outputs)]
        self._shapes = [np.shape(a) for a in arrays], [(a.shape, a.dtype) for a in outputs]
        self.released = False

    @property
    def input_keys(self) -> Sequence[Hashable]:
        return self.sources

    @property
    def output_keys(self) -> Sequence[Hashable]:
        return [(self, j) for j in range(len(self._outputs))]

    def input(self, index: int) -> Any:
        self._check_alive()
        return self._inputs[index]

    def output(self, index: int) -> Any:
        self._check_alive()
        return self._outputs[index]

    def input_shape(self, index: int) -> tuple[int, ...]:
        return self._shapes[0][index]

    def output_shape(self, index: int) -> tuple[int, ...]:
        return self._shapes[1][index][0]

    def zeros(self, index: int) -> np.ndarray:
        return np.zeros(*self._shapes[1][index])

    def release(self) -> None:
        """Let go of the saved values; a second backward pass through this node then says so."""
        self._inputs, self._outputs, self.released = [], [None] * len(self._outputs), True

    def _check_alive(self) -> None:
        if self.released:
            raise OperatorError(
                f"{self.definition.label}: the values saved for its gradient were freed by an earlier backward(); "
                "call that one with retain_graph=True"
            )


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
        self._wrap = wrap

    def input(self, index: int) -> Any:
        return self._wrap(self.node.input(index), self.node.sources[index])

    def output(self, index: int) -> Any:
        return self._wrap(self.node.output(index), (self.node, index))

    def zeros(self, index: int) -> Any:
        return self._wrap(self.node.zeros(index), None)


def reachable(sources: Iterable[Any], blocked: Container[Any] = ()) -> list[Node]:
    """The nodes that gradients can reach from `sources` on ways around `blocked`, the youngest first."""
    found: dict[int, Node] = {}
    waiting = _makers(sources, blocked)
    while waiting:
        node = waiting.pop()
        if node.order not in found:
            found[node.order] = node
            waiting += _makers(node.sources, blocked)
    return [found[order] for order in sorted(found, reverse=True)]


def _makers(sources: Iterable[Any], blocked: Container[Any]) -> list[Node]:
    return [source[0] for source in sources if isinstance(source, tuple) and source not in blocked]


def leading_to(targets: Container[Any], nodes: Sequence[Node]) -> list[Node]:
    """Those of `nodes`, the youngest first, from which gradients can flow on to one of `targets`."""
    found: set[Node] = set()
    for node in reversed(nodes):
        if any(source in targets or (isinstance(source, tuple) and source[0] in found) for source in node.sources):
            found.add(node)
    return [node for node in nodes if node in found]
