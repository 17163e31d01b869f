"""Side effects of a traced function: the attributes and gradients that it sets, and its results."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import ProgramError, ShapeError
from app.graph.variable import Variable
from app.jit.convert.state import Undefined
from app.jit.tracer import MISSING, Tracer, holds_variables
from app.jit.variable import TracedVariable
from app.ops.spec import UNKNOWN
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
        return self._structure.filled([_new(leaf) if name is None else made[name] for leaf, name in pairs])


def _new(value: Any) -> Any:
    """A copy of what the caller may change."""
    return copy.copy(value) if isinstance(value, (set, bytearray, deque, np.ndarray)) else value


class Effects:
    """The side effects of a trace. Made while its tracer is active."""

    def __init__(self, tracer: Tracer, arguments: Sequence[Variable], given: Sequence[str]):
        """`arguments` are the traced arguments, `given` their initial names."""
        self.went_back = tracer.went_back
        """Whether the function has run a backward pass itself; its results then have no gradient."""
        self._left: list[tuple[Tensor, str | None]] = []
        """Tensors whose `.grad` the function sets or clears."""
        self._attributes: list[tuple[Any, str, Outputs]] = []
        self._changed = [
            (place, v.name) for place, (v, name) in enumerate(zip(arguments, given, strict=True)) if v.name != name
        ]
        """The arguments that the function changes in place, each with the variable that it becomes."""
        for argument in arguments:
            if isinstance(argument, TracedVariable):
                argument.check_current()
        for tensor, _ in tracer.gradients.values():
            now: Any = tensor.grad
            if now is None or isinstance(now, Variable):
                self._left.append((tensor, getattr(now, "name", None)))
        data = [v for v in tracer.program.global_block().vars.values() if v.is_data]
        self._of_arguments = [getattr(getattr(v, "grad", None), "name", None) for v in data]
        self.states: list[tuple[str, str]] = []
        """The captured variables of Tensors that are read from attributes and replaced, each with its new value."""
        self.fixed: list[Any] = []
        """What it assigns as it is, such as Tensors from outside."""
        for layer, name, before in tracer.attributes.values():
            self._note(tracer, layer, name, before)
        if tracer.startup.global_block().ops:
            raise ProgramError(
                "the traced function creates a parameter, which would be a new one at every call; "
                "create layers and parameters outside of it"
            )

    def _note(self, tracer: Tracer, layer: Any, name: str, before: Any) -> None:
        """Note what is to be assigned to an attribute at each call."""
        now = layer.__dict__.get(name, MISSING)
        if not holds_variables(now):
            leaves = Structure.of(now).leaves if isinstance(now, (list, tuple, Tensor)) else []
            if any(isinstance(leaf, Tensor) for leaf in leaves):  # one from outside
                self._attributes.append((layer, name, Outputs(now)))
            self.fixed += leaves
            return
        olds, news = Structure.of(before), Structure.of(now)
        self.fixed += news.leaves
        pairs = [*zip(olds.leaves, news.leaves, strict=False)] if olds.shape == news.shape else []
        read = [(tracer.captured[id(old)].variable, new) for old, new in pairs if id(old) in tracer.captured]
        if any(_agree(old, new) is None for old, new in pairs if id(old) in tracer.captured):
            raise ShapeError(
                f"{type(layer).__name__}.{name} is read, and set to a value of an open size; "
                "it can only be used again if its size is fixed by the InputSpecs"
            )
        if read and len(read) == len(pairs) and all(new is variable for variable, new in read):
            return  # it was changed in place, as by `self.state.add_(x)`
        self._attributes.append((layer, name, Outputs(now)))
        if all(_agree(old, new) for old, new in pairs):
            self.states += [(variable.name, new.name) for variable, new in read]

    def changed_arguments(self, arguments: Sequence[Variable]) -> set[str]:
        """The names of the arguments that the function changes in place."""
        return {arguments[place].name for place, _ in self._changed}

    @property
    def names(self) -> list[str | None]:
        """The variables that must be fetched in every run for the side effects."""
        of_attributes = [name for _, _, outputs in self._attributes for name in outputs.names]
        changed = [name for _, name in self._changed]
        return [*changed, *(name for _, name in self._left), *self._of_arguments, *of_attributes]

    def leave(self, made: dict[str, Any], tensors: Sequence[Any]) -> None:
        """Apply the side effects: changed arguments, attributes and gradients."""
        for place, variable in self._changed:
            made[variable] = tensors[place].become(made[variable])
        stopping = {new for _, new in self.states}  # as a Tensor from outside, a state has no gradient
        for layer, attribute, outputs in self._attributes:
            values = {**made, **{name: made[name].detach() for name in outputs.names if name in stopping}}
            setattr(layer, attribute, outputs.filled(values))
        for tensor, name in self._left:
            tensor.grad = None if name is None else made[name]
            if tensor.grad is not None:
                tensor.grad.stop_gradient = False
        if any(self._of_arguments):
            for tensor, name in zip(tensors, self._of_arguments, strict=True):
                if name is not None:
                    tensor.grad = made[name] if tensor.grad is None else tensor.grad + made[name]


def _agree(old: Any, new: Any) -> bool | None:
    """Whether a Tensor can change in place to a value; None if that depends on an open size."""
    if not (isinstance(old, Tensor) and isinstance(new, Variable) and old.dtype == new.dtype):
        return False
    if tuple(old.shape) == new.shape:
        return True
    return None if len(old.shape) == len(new.shape) and UNKNOWN in new.shape else False
