"""The `ctx` of a PyLayer: what forward keeps for backward, and what it says of its inputs and outputs."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from app.errors import CustomOperatorError
from app.ops.dtype import is_float
from app.ops.methods import ValueMethods
from app.tensor import Tensor
from app.tensor.modes import modes
from app.tensor.tape import Node, check_unchanged, latest, on_tape

Inputs = Sequence[tuple[int, Any]]
"""The Tensors or Variables among the arguments of a call, each with the place of the argument."""


class PyLayerContext:
    """Holds the tensors saved for backward, and any attribute that forward sets.

    A user may set an attribute of any name, so everything that is not public begins with an underscore.
    """

    _saved: Sequence[Any] | None = None
    _in_forward = True
    _node: weakref.ref[Node] | None = None
    _materialize = _same_dtype = True
    _not_differentiable: tuple[Any, ...] = ()
    _not_in_place: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _among_results: Sequence[bool] | None = None
    """For each result of forward whether it is a Tensor; None if all are."""

    def __init__(self, label: str, lenient: bool, argument_count: int, inputs: Inputs):
        self._label, self._lenient = label, lenient
        self._argument_count = argument_count
        self._places: list[int] = []
        """For each input Tensor the position of the argument that it was, or was in."""
        self._needs: list[bool] = []
        """For each input Tensor whether it needs a gradient."""
        for place, tensor in inputs:
            self._places.append(place)
            self._needs.append(not tensor.stop_gradient)

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument of apply, whether it is or contains a Tensor that needs a gradient."""
        wanting = {place for place, needed in zip(self._places, self._needs, strict=True) if needed}
        return tuple(place in wanting for place in range(self._argument_count))

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward. Call it once, in forward."""
        if not self._in_forward:
            raise CustomOperatorError("save_for_backward can only be called in forward")
        if self._saved is not None and not self._lenient:
            raise CustomOperatorError("save_for_backward was called a second time; pass it all tensors at once")
        for value in tensors:
            if value is not None and not isinstance(value, ValueMethods):
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

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare outputs that have no gradient."""
        self._not_differentiable += tensors

    def mark_not_inplace(self, *tensors: Tensor) -> None:
        """Declare inputs that forward returns unchanged, so that the results are separate Tensors."""
        self._not_in_place += tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that forward changed in place; it must return them."""
        self._dirty += tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for an output that got no gradient."""
        self._materialize = bool(value)

    def set_grad_in_dtype_consistent(self, flag: bool) -> None:
        """Whether backward gets gradients in the types of the outputs (the default), or in their own."""
        self._same_dtype = bool(flag)

    # For the operator

    def _restored(self, saved: tuple[np.ndarray, Any, int | None], node: Node | None) -> Any:
        array, source, slot = saved
        if slot is not None:
            source = (node, slot) if node is not None and modes().on else None
        return Tensor(array) if source is None else on_tape(array, source)

    def _recorded(self, douts: Sequence[Any]) -> list[Any]:
        """The values through which the result of backward could be differentiated.

        These are gradients that arrive and inputs, as forward may have saved them. The numbers of the Tensors for the
        inputs are not theirs.
        """
        inputs = [d for d in douts if isinstance(d, Tensor) and not d.stop_gradient] if modes().on else []
        node = None if self._node is None else self._node()
        if node is None or not inputs:
            return inputs
        for index, source in enumerate(node.sources):
            if isinstance(source, tuple):
                inputs.append(on_tape(node.like(index), source))
            elif source is not None:
                inputs.append(source)
        return inputs

    def _changed(self, returned: Sequence[Any]) -> list[Any]:
        """The inputs that forward changed in place, given those that it returned."""
        if self._lenient:
            return list(self._dirty)
        return [*self._dirty, *(t for t in returned if all(t is not other for other in self._not_in_place))]

    def _close(self, outputs: Sequence[Tensor | None], node: Node | None) -> None:
        """End of forward: keep the arrays of what was saved, and their sources on the tape.

        For an output its slot is kept, because keeping the Tensor would make a reference cycle. None stands for an
        input that forward returned unchanged: what was saved is the input.
        """
        self._in_forward = False
        if node is not None:
            self._node = weakref.ref(node)
        if not self._saved:
            return
        saved: list[Any] = []
        for tensor in self._saved:
            if tensor is None:
                saved.append(None)
                continue
            source, own = None if tensor.stop_gradient else tensor.source, None
            for slot, output in enumerate(outputs):
                if output is tensor:
                    source, own = None, slot if self._is_differentiable(output) else None
            saved.append((tensor._array, source, own))
        self._saved = saved

    def _is_differentiable(self, output: Any) -> bool:
        """Whether an output can get a gradient."""
        if self._not_differentiable and any(output is marked for marked in self._not_differentiable):
            return False
        return not self._lenient or is_float(output.dtype)

    @staticmethod
    def _as_results(douts: Sequence[Any], are_tensors: Sequence[bool]) -> Sequence[Any]:
        """The gradients of forward's results: None for each result that is not a Tensor."""
        gradients = iter(douts)
        return [next(gradients) if is_tensor else None for is_tensor in are_tensors]

    def _as_inputs(self, result: Any) -> list[Any]:
        """The gradient of each input Tensor. Backward may also return one for each argument, as in PyTorch."""
        by_argument = list(result) if isinstance(result, (tuple, list)) else [result]
        gradients = _flat(by_argument)
        count, places = len(self._places), self._places
        if len(gradients) == count:
            return gradients
        if len(by_argument) >= self._argument_count:
            others = [g for place, g in enumerate(by_argument) if place not in places]
            expanded = _flat(
                [[None] * places.count(p) if by_argument[p] is None else by_argument[p] for p in dict.fromkeys(places)]
            )
            if all(g is None for g in others) and len(expanded) == count:
                return expanded
        raise CustomOperatorError(
            f"{self._label}: backward returned {_counted(len(gradients), 'gradient')}, "
            f"but forward had {_counted(count, 'Tensor')} as input "
            f"(an incorrect number of gradients: expected {count}, got {len(gradients)})"
        )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _flat(values: Iterable[Any]) -> list[Any]:
    return [v for value in values for v in (value if isinstance(value, (list, tuple)) else (value,))]
