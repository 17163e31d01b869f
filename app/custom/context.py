"""The context of one `apply` of a PyLayer: what its forward leaves there for its backward."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.errors import OperatorError
from app.ops.spec import Spec, spec_of
from app.tensor import Tensor
from app.tensor.modes import recording
from app.tensor.tape import Node
from app.tensor.tensor import on_tape


class Input(NamedTuple):
    """What is kept of a Tensor that forward got: what its gradient must look like, and whether it wants one."""

    spec: Spec
    needed: bool
    place: int
    """Which argument it was, or was in."""


class PyLayerContext:
    """Holds the tensors saved for backward, and any attribute that a forward sets on it."""

    def __init__(self, label: str, arguments: Sequence[Any], tensors: Sequence[tuple[int, Tensor]]) -> None:
        self._label = label
        self._inputs = [Input(spec_of(t), not t.stop_gradient, place) for place, t in tensors]
        self._argument_count = len(arguments)
        self._saved: list[Any] | None = None
        self._in_forward = True
        self._node: weakref.ref[Node] | None = None
        self._not_differentiable: list[Tensor] = []
        self._materialize = True
        self.needs_input_grad = tuple(isinstance(a, Tensor) and not a.stop_gradient for a in arguments)
        """For each argument of apply, whether it is a Tensor that wants a gradient."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; once, and only in forward."""
        if not self._in_forward:
            raise OperatorError("save_for_backward can only be called in forward")
        if self._saved is not None:
            raise OperatorError("save_for_backward was called a second time; pass it all tensors at once")
        for value in tensors:
            if value is not None and not isinstance(value, Tensor):
                raise OperatorError(
                    f"save_for_backward takes Tensors, found {type(value).__name__}; "
                    "keep other values as attributes of ctx"
                )
        self._saved = list(tensors)

    def saved_tensor(self) -> tuple[Any, ...]:
        """The tensors that forward saved (Paddle's spelling)."""
        node = self._node() if self._node is not None else None
        if node is not None:
            node._check_alive()
        return tuple(v.on_tape(node) if isinstance(v, _Saved) else v for v in self._saved or ())

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that forward saved (PyTorch's spelling)."""
        return self.saved_tensor()

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._not_differentiable += tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (at first) or None for an output that got no gradient."""
        self._materialize = bool(value)

    def close(self, outputs: Sequence[Tensor], node: Node | None) -> list[bool]:
        """End of forward: keep the numbers of what was saved; says of each output whether it may have a gradient."""
        self._in_forward = False
        self._node = None if node is None else weakref.ref(node)
        slots = {id(t): slot for slot, t in enumerate(outputs)}
        if self._saved is not None:
            self._saved = [v if v is None else _Saved.of(v, slots.get(id(v))) for v in self._saved]
        marked = {id(t) for t in self._not_differentiable}
        self._not_differentiable = []
        return [id(t) not in marked and t._array.dtype.kind == "f" for t in outputs]


class _Saved(NamedTuple):
    """A Tensor that was saved: its numbers, and where they stand on the tape.

    Of an output that is the number of the output: holding the Tensor itself would be a reference cycle.
    """

    array: np.ndarray
    source: Any
    slot: int | None

    @classmethod
    def of(cls, tensor: Tensor, slot: int | None) -> _Saved:
        source = None if slot is not None or tensor.stop_gradient else tensor.source
        return cls(tensor._array, source, slot)

    def on_tape(self, node: Node | None) -> Tensor:
        own = node is not None and self.slot is not None and recording.on
        return on_tape(self.array, (node, self.slot) if own else self.source)
