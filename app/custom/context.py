"""The context of one `apply` of a PyLayer: what its forward leaves there for its backward."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.errors import CustomOperatorError
from app.tensor import Tensor
from app.tensor.modes import modes
from app.tensor.tape import Node, check_unchanged, latest, on_tape

if TYPE_CHECKING:
    from app.custom.pylayer import LayerDefinition


class PyLayerContext:
    """Holds the tensors saved for backward, and any attribute that a forward sets on it."""

    _saved: Sequence[Any] | None = None
    _in_forward = True
    _node: weakref.ref[Node] | None = None
    _materialize = _same_dtype = True
    _not_differentiable: tuple[Any, ...] = ()
    _not_in_place: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _among_results: Sequence[bool] | None = None
    """For each result of forward whether it is a Tensor; None where all are."""

    def __init__(self, definition: LayerDefinition, arguments: Sequence[Any], inputs: Sequence[tuple[int, Tensor]]):
        self._definition = definition
        self._argument_count = len(arguments)
        self._places: list[int] = []
        """Of each Tensor among the arguments, which argument it was, or was in."""
        self._needs: list[bool] = []
        """Of each, whether it wants a gradient."""
        for place, tensor in inputs:
            self._places.append(place)
            self._needs.append(not tensor.stop_gradient)
        self._kind = tensor.result_class if inputs else Tensor.result_class

    @property
    def _label(self) -> str:
        return self._definition.label

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument of apply, whether it is, or holds, a Tensor that wants a gradient."""
        wanting = {place for place, needed in zip(self._places, self._needs, strict=True) if needed}
        return tuple(place in wanting for place in range(self._argument_count))

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; once, and only in forward."""
        if not self._in_forward:
            raise CustomOperatorError("save_for_backward can only be called in forward")
        if self._saved is not None and not self._definition.layer.lenient:
            raise CustomOperatorError("save_for_backward was called a second time; pass it all tensors at once")
        for value in tensors:
            if value is not None and not isinstance(value, Tensor):
                raise CustomOperatorError(
                    f"save_for_backward takes Tensors, found {type(value).__name__}; "
                    "keep other values as attributes of ctx"
                )
        self._saved = tensors

    def saved_tensor(self) -> tuple[Any, ...]:
        """The tensors that forward saved (Paddle's spelling)."""
        if self._in_forward or not self._saved:
            return tuple(self._saved or ())
        node = None if self._node is None else self._node()
        if node is not None:
            node.check_alive()
            if latest.moment > node.order:
                for place, saved in enumerate(self._saved):
                    if saved is not None:
                        check_unchanged(saved[0], node.order, f"{self._label}: Tensor {place} that forward saved")
        tensors = []
        for saved in self._saved:
            tensors.append(saved if saved is None else self._restored(saved, node))
        return tuple(tensors)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that forward saved (PyTorch's spelling)."""
        return self.saved_tensor()

    def inputs_on_tape(self) -> list[Tensor]:
        """A value at the place of each input that wants a gradient; its numbers are not those of the input."""
        node = None if self._node is None else self._node()
        inputs: list[Tensor] = []
        if node is None:
            return inputs
        for index, source in enumerate(node.sources):
            if isinstance(source, tuple):
                inputs.append(on_tape(self._kind, node.like(index), source))
            elif source is not None:
                inputs.append(source)
        return inputs

    def _restored(self, saved: tuple[np.ndarray, Any, int | None], node: Node | None) -> Any:
        array, source, slot = saved
        if slot is not None:
            source = (node, slot) if node is not None and modes().on else None
        return self._kind(array) if source is None else on_tape(self._kind, array, source)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._not_differentiable += tensors

    def mark_not_inplace(self, *tensors: Tensor) -> None:
        """Say which inputs forward returns without having changed them, so that they become results of their own."""
        self._not_in_place += tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs forward changed in place; it must return them."""
        self._dirty += tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (at first) or None for an output that got no gradient."""
        self._materialize = bool(value)

    def set_grad_in_dtype_consistent(self, flag: bool) -> None:
        """Whether backward gets gradients in the types of the outputs (at first), or as they come."""
        self._same_dtype = bool(flag)

    def returned(self, results: Sequence[Any]) -> None:
        """Note what forward returned: backward gets None at the place of each result that is no Tensor."""
        are_tensors = [isinstance(result, Tensor) for result in results]
        if not all(are_tensors):
            self._among_results = are_tensors

    def among_results(self, douts: Sequence[Any]) -> Sequence[Any]:
        """The gradients of the Tensors among the results, as backward gets them."""
        gradients = iter(douts)
        return [next(gradients) if is_tensor else None for is_tensor in self._among_results or ()]

    def close(self, outputs: Sequence[Tensor], node: Node | None) -> None:
        """End of forward: of what was saved, keep the numbers and where they stand on the tape.

        Of an output that is its number: holding the Tensor itself would be a reference cycle.
        """
        self._in_forward = False
        if node is not None:
            self._node = weakref.ref(node)
        if not self._saved:
            return
        kept: list[Any] = []
        for tensor in self._saved:
            if tensor is None:
                kept.append(None)
                continue
            source, own = None if tensor.stop_gradient else tensor.source, None
            for slot, output in enumerate(outputs):
                if output is tensor:
                    source, own = None, slot
            kept.append((tensor._array, source, own))
        self._saved = kept

    def is_differentiable(self, output: Tensor) -> bool:
        """Whether a gradient may arrive at an output."""
        if self._not_differentiable and any(output is marked for marked in self._not_differentiable):
            return False
        return output._array.dtype.kind == "f" or not self._definition.layer.lenient
