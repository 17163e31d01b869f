"""Eager operators shown with what they read and made, forwards and backwards: for finding what went wrong.

Every Tensor that is made is kept, and says on the tape which operator made it; so whatever way an operator was
applied in, it is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app.graph.autodiff import reverse_walk
from app.ops.look import Look
from app.tensor.modes import modes, set_modes
from app.tensor.tape import Node, reachable
from app.tensor.tensor import Tensor


class Looking:
    """What becomes of a Tensor made by `tensor`, once a loss has been computed from it."""

    def __init__(self, names: Mapping[int, str]):
        """`names` are those of Tensors, by their identity."""
        made: list[Tensor] = []

        class Seen(Tensor):
            """A Tensor that is remembered, as are all that operators make of it."""

            __slots__ = ()

            def __init__(self, array: np.ndarray, stop_gradient: bool = True, name: str | None = None):
                super().__init__(array, stop_gradient, name)
                made.append(self)

        Seen.result_class = Seen
        self.tensor = Seen
        self._made, self._names = made, names

    def forward(self) -> Iterator[Look]:
        """The operators that ran so far, and that a gradient can go back through."""
        values = {tensor._node and (tensor._node, tensor._slot): tensor._array for tensor in self._made}
        for tensor in self._made:
            node = tensor._node
            if node is not None:
                read = [self._source(node, i, values) for i, source in enumerate(node.sources) if source is not None]
                yield Look(node.definition.label, read, [(node.definition.outputs[tensor._slot], tensor._array)])

    def _source(self, node: Node, place: int, values: Mapping[Any, np.ndarray]) -> tuple[str, np.ndarray]:
        source, name = node.sources[place], _name(node.definition.inputs, place)
        if isinstance(source, tuple):
            return name, values[source]
        return self._names.get(id(source), name), source._array

    def backward(self, loss: Tensor) -> list[Look]:
        """The way back from a loss: each operator's gradient, of what arrived and what it passed on."""
        looks: list[Look] = []
        gradients: dict[Any, Any] = {loss.source: np.ones_like(loss._array)}
        calls: list[Any] = [_Shown(node, looks) for node in reachable(gradients)]
        outside = modes()
        set_modes(outside.unrecorded)
        try:
            reverse_walk(calls, gradients)
        finally:
            set_modes(outside)
        return looks


class _Shown:
    """A node on the tape, and in the reverse walk its operator, that tells what came of its gradient."""

    def __init__(self, node: Node, looks: list[Look]):
        self.node, self._looks = node, looks
        self.definition: Any = self
        self.attributes, self.needs = node.attributes, node.needs
        self.input_keys, self.output_keys = node.input_keys, node.output_keys

    def differentiate(self, call: Any, douts: Sequence[Any]) -> Sequence[Any]:
        definition = self.node.definition
        gradients = definition.differentiate(self.node, douts)
        read = [("d" + _name(definition.outputs, i), np.asarray(g)) for i, g in enumerate(douts) if g is not None]
        made = [("d" + _name(definition.inputs, i), np.asarray(g)) for i, g in enumerate(gradients) if g is not None]
        self._looks.append(Look(f"the gradient of {definition.label}", read, made))
        return gradients


def _name(names: Sequence[str], place: int) -> str:
    return names[place] if place < len(names) else f"{place}"
