"""The context of one `apply` of a PyLayer: what its forward leaves there for its backward."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import OperatorError
from app.tensor import Tensor
from app.tensor.modes import recording
from app.tensor.tape import Node
from app.tensor.tensor import on_tape


class PyLayerContext:
    """Holds the tensors saved for backward, and any attribute that a forward sets on it."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._saved: list[Any] | None = None
        self._in_forward = True
        self._node: weakref.ref[Node] | None = None
        self._not_differentiable: list[int] = []
        self._materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; once, and only in forward."""
        if not self._in_forward:
            raise OperatorError(f"{self._label}: save_for_backward can only be called in forward")
        if self._saved is not None:
            raise OperatorError(
                f"{self._label}: save_for_backward was called a second time; pass it all tensors at once"
            )
        for value in tensors:
            if value is not None and not isinstance(value, Tensor):
                raise OperatorError(
                    f"{self._label}: save_for_backward takes Tensors, found {type(value).__name__}; "
                    "keep other values as attributes of ctx"
                )
        self._saved = list(tensors)

    def saved_tensor(self) -> tuple[Any, ...]:
        """The tensors that forward saved (Paddle's spelling)."""
        return tuple(self._unpack(value) for value in self._saved or ())

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that forward saved (PyTorch's spelling)."""
        return self.saved_tensor()

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._not_differentiable += [id(t) for t in tensors]

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (at first) or None for an output that got no gradient."""
        self._materialize = bool(value)

    def _unpack(self, value: Any) -> Any:
        """A saved output comes back as it stands on the tape; holding the Tensor itself would be a reference cycle."""
        if not isinstance(value, _SavedOutput):
            return value
        node = self._node() if self._node is not None else None
        return on_tape(value.array, (node, value.slot) if node is not None and recording.on else None)

    def close(self, node: Node | None, outputs: Sequence[Tensor]) -> None:
        """End of forward: outputs among the saved tensors are kept by their place."""
        self._in_forward = False
        if node is not None:
            self._node = weakref.ref(node)
        places = {id(t): i for i, t in enumerate(outputs)}
        if self._saved is not None:
            self._saved = [_SavedOutput(v._array, places[id(v)]) if id(v) in places else v for v in self._saved]


class _SavedOutput:
    """An output of forward that was saved: its numbers and which output it is."""

    __slots__ = ("array", "slot")

    def __init__(self, array: np.ndarray, slot: int):
        self.array, self.slot = array, slot
