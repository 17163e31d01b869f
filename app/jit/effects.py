"""Side effects of a traced function: the attributes and gradients that it sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.errors import ProgramError
from app.graph.variable import Variable
from app.jit.convert.state import Undefined, copied
from app.jit.tracer import MISSING, Tracer, holds_variables
from app.jit.variable import TracedVariable
from app.ops.creation import assign
from app.ops.definition import apply
from app.static.structure import Structure
from app.tensor import Tensor


class Outputs:
    """The nested outputs of a function: some are computed by its Program, others are constants."""

    def __init__(self, nest: Any):
        self._structure = Structure.of(nest)
        self.names: list[str | None] = []
        """The variables of its leaves; None for constant leaves."""
        for leaf in self._structure.leaves:
            if isinstance(leaf, TracedVariable):
                leaf.check_current()
            if isinstance(leaf, Undefined):
                leaf.refuse()
            self.names.append(leaf.name if isinstance(leaf, Variable) else None)

    def filled(self, made: dict[str, Any]) -> Any:
        """Return the nest filled with computed values."""
        pairs = zip(self._structure.leaves, self.names, strict=True)
        return self._structure.filled([copied(leaf) if name is None else made[name] for leaf, name in pairs])


class Effects:
    """The conditions under which a trace can be used again, and its side effects. Made while its tracer is active."""

    def __init__(self, tracer: Tracer, arguments: Sequence[Variable], given: Sequence[str]):
        """`arguments` are the traced arguments, `given` their initial names."""
        self.went_back = tracer.went_back
        """Whether the function has run a backward pass itself; its results then have no gradient."""
        self._layers = [(layer, layer.training) for layer in tracer.layers.values()]
        self._read = list(tracer.gradients_read.values())
        self._numbers = list(tracer.numbers.values())
        self._left: list[tuple[Tensor, str | None]] = []
        """Tensors whose `.grad` the function sets or clears."""
        self._attributes: list[tuple[Any, str, Outputs]] = []
        self._changed = [
            (place, v.name) for place, (v, name) in enumerate(zip(arguments, given, strict=True)) if v.name != name
        ]
        """The arguments that the function changes in place, each with the variable that it becomes."""
        for tensor, _ in tracer.gradients.values():
            now: Any = tensor.grad
            if now is None or isinstance(now, Variable):
                self._left.append((tensor, getattr(now, "name", None)))
        data = [v for v in tracer.program.global_block().vars.values() if v.is_data]
        self._of_arguments = [getattr(getattr(v, "grad", None), "name", None) for v in data]
        for layer, name, before in tracer.attributes.values():
            now = layer.__dict__.get(name, MISSING)
            if not holds_variables(now):
                continue
            alike = isinstance(before, Tensor) and isinstance(now, Variable) and tuple(before.shape) == now.shape
            if alike and before.dtype == now.dtype:  # a buffer, which changes in place
                apply(assign, [now], {}, into=[tracer.value(before)])
            else:
                self._attributes.append((layer, name, Outputs(now)))
        if tracer.startup.global_block().ops:
            raise ProgramError(
                "the traced function creates a parameter, which would be a new one at every call; "
                "create layers and parameters outside of it"
            )

    def changed_arguments(self, arguments: Sequence[Variable]) -> set[str]:
        """The names of the arguments that the function changes in place."""
        return {arguments[place].name for place, _ in self._changed}

    @property
    def names(self) -> list[str | None]:
        """The variables that must be fetched in every run for the side effects."""
        of_attributes = [name for _, _, outputs in self._attributes for name in outputs.names]
        changed = [name for _, name in self._changed]
        return [*changed, *(name for _, name in self._left), *self._of_arguments, *of_attributes]

    def hold(self) -> bool:
        """Return whether the modes of layers and the presence of gradients are unchanged."""
        for layer, training in self._layers:
            if layer.training is not training:
                return False
        for tensor, there in self._read:
            if (tensor.grad is not None) is not there:
                return False
        for known, numbers in self._numbers:
            now = known._array
            if now.shape != numbers.shape or now.dtype != numbers.dtype or now.tobytes() != numbers.tobytes():
                return False
        return True

    def leave(self, made: dict[str, Any], tensors: Sequence[Any]) -> None:
        """Apply the side effects: changed arguments, attributes and gradients."""
        for place, variable in self._changed:
            made[variable] = tensors[place].become(made[variable])
        for layer, attribute, outputs in self._attributes:
            setattr(layer, attribute, outputs.filled(made))
        for tensor, name in self._left:
            tensor.grad = None if name is None else made[name]
            if tensor.grad is not None:
                tensor.grad.stop_gradient = tensor.grad_stops
        if any(self._of_arguments):
            for tensor, name in zip(tensors, self._of_arguments, strict=True):
                if name is not None:
                    tensor.grad = made[name] if tensor.grad is None else tensor.grad + made[name]
