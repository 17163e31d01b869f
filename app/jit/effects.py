"""The results of a traced function, and its side effects: changed arguments and gradients."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.graph.variable import Variable
from app.jit.convert.state import Undefined
from app.jit.tracer import Tracer, check_no_hooks
from app.jit.variable import RefusedError, TracedVariable
from app.static.structure import Structure
from app.tensor import Tensor
from app.tensor.backward import run_backward


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

    def filled(self, values: dict[str, Any]) -> Any:
        """Return the nest filled with computed values."""
        pairs = zip(self._structure.leaves, self.names, strict=True)
        return self._structure.filled([_new(leaf) if name is None else values[name] for leaf, name in pairs])


def _new(value: Any) -> Any:
    """A copy of what the caller may change."""
    return copy.copy(value) if isinstance(value, (set, bytearray, deque, np.ndarray)) else value


class Effects:
    """The side effects of a trace. Made while its tracer is active."""

    def __init__(self, tracer: Tracer, arguments: Sequence[Variable], initial_names: Sequence[str]):
        """`arguments` are the traced arguments, `initial_names` their initial names."""
        self.went_back = tracer.went_back
        """Whether the function has run a backward pass itself; its results then have no gradient."""
        self._left: list[tuple[Tensor, str | None]] = []
        """Tensors whose `.grad` the function sets or clears."""
        self._changed = [
            (place, v.name)
            for place, (v, name) in enumerate(zip(arguments, initial_names, strict=True))
            if v.name != name
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
        self._of_arguments = [getattr(getattr(v, "own_gradient", None), "name", None) for v in data]
        self._used = [name in tracer.gradients_of_arguments for name in initial_names]
        """Whether the function uses the `.grad` of each argument, which is taken to be None before."""
        if tracer.startup.global_block().ops:
            tracer.refuse_parameter()

    def changed_arguments(self, arguments: Sequence[Variable]) -> set[str]:
        """The names of the arguments that the function changes in place."""
        return {arguments[place].name for place, _ in self._changed}

    @property
    def names(self) -> list[str | None]:
        """The variables that must be fetched in every run for the side effects."""
        changed = [name for _, name in self._changed]
        return [*changed, *(name for _, name in self._left), *self._of_arguments]

    def leave(self, values: dict[str, Any], tensors: Sequence[Any]) -> None:
        """Apply the side effects."""
        for place, variable in self._changed:
            values[variable] = tensors[place].become(values[variable])
        for tensor, name in self._left:
            tensor.grad = None if name is None else values[name]
            if tensor.grad is not None:
                tensor.grad.stop_gradient = False
        ends = [(tensor, values[n]) for tensor, n in zip(tensors, self._of_arguments, strict=True) if n is not None]
        if ends:
            arguments, gradients = zip(*ends, strict=True)
            run_backward(arguments, gradients, False, False)  # it goes on if an argument was computed

    def check_ends(self, arguments: Sequence[Variable], tensors: Sequence[Tensor]) -> None:
        """Refuse arguments with hooks that eager code would call in the function's backward pass."""
        if any(self._of_arguments):
            for variable, tensor, name in zip(arguments, tensors, self._of_arguments, strict=True):
                if name is not None:
                    check_no_hooks(variable.name, tensor)
        if True in self._used:
            for variable, tensor, used in zip(arguments, tensors, self._used, strict=True):
                if used and tensor.grad is not None:
                    raise RefusedError(
                        f"the traced function uses the .grad of {variable.name}, an argument, which has one already; "
                        f"set it to None before the call, {variable.name}.clear_grad(set_to_zero=False)"
                    )
