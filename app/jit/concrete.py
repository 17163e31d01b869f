"""A function traced for one signature: its Program, its inputs and outputs, and how it runs on Tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.errors import InPlaceError, ProgramError
from app.graph.gradients import active_names
from app.graph.program import Program
from app.graph.scope import Scope
from app.graph.variable import Variable
from app.jit.effects import Effects, Outputs
from app.jit.gradient import GradientProgram, TracedOperator
from app.jit.reads import Reads
from app.jit.running import Runner
from app.jit.tracer import Captured
from app.tensor import Tensor
from app.tensor.inplace import write
from app.tensor.modes import modes
from app.tensor.tape import note_change, owner_of


class ConcreteProgram:
    """The Program of a function for one kind of inputs, with its captured Tensors and side effects."""

    def __init__(
        self,
        name: str,
        where: str,
        backend: str,
        program: Program,
        arguments: Sequence[Variable],
        captured: Sequence[Captured],
        result: Any,
        effects: Effects,
        reads: Reads,
    ):
        self.name, self.where, self.backend = name, where, backend
        self.program = program
        self.arguments = list(arguments)
        """The variables that are fed, in order."""
        self.captured = list(captured)
        """The captured Tensors, each with its persistable variable."""
        self.outputs = Outputs(result)
        self.effects, self._reads = effects, reads
        self.inputs = [*(v.name for v in self.arguments), *(c.variable.name for c in self.captured)]
        """The inputs of the Program: arguments, then captured Tensors."""
        passed = {v.name for v in self.arguments}
        names = [n for n in (*self.outputs.names, *self.effects.names) if n is not None and n not in passed]
        self.fetch = list(dict.fromkeys(names))
        """The variables fetched in every run."""
        self._check_fetch()
        written = {n for op in self.program.global_block().ops for n in op.outputs}
        self.changed = [c for c in self.captured if c.variable.name in written]
        changed = {c.variable.name for c in self.changed} | effects.changed_arguments(self.arguments)
        self._in_place = [place for place, name in enumerate(self.inputs) if name in changed]
        self._guards = [(c, *c.variable.spec, c.variable.stop_gradient) for c in self.captured]
        block = self.program.global_block()
        active = active_names(block, [name for name in self.inputs if not block.var(name).stop_gradient])
        self._differentiable = not self.effects.went_back and any(name in active for name in self.fetch)
        self._scope = Scope()
        self._runner = Runner(self.program, self.fetch, backend)
        self._recorded: dict[tuple[bool, ...], tuple[TracedOperator, Runner]] = {}

    @property
    def label(self) -> str:
        """The name of the function in messages."""
        return f"function {self.name} ({self.where})"

    def _check_fetch(self) -> None:
        block = self.program.global_block()
        for name in self.fetch:
            if name not in block.vars:
                raise ProgramError(
                    f"{self.label} returns {name}, which has a value only inside a branch or a loop; "
                    "assign the variable before the branch or loop too"
                )

    # Reuse

    def holds(self) -> bool:
        """Return whether all that it reads from outside is as it was when the function was traced."""
        if not self._reads.hold():
            return False
        for captured, shape, dtype, stops in self._guards:
            holder = captured.holder
            array = holder._array
            if holder.stop_gradient is not stops or array.shape != shape or array.dtype != dtype:
                return False
        return True

    # Running

    def __call__(self, tensors: Sequence[Any]) -> Any:
        """Run the function on Tensors of the traced kind."""
        self.effects.check_ends(self.arguments, tensors)
        holders = [*tensors, *[c.holder for c in self.captured]]
        if self._in_place:
            self._check_alone([t._array for t in holders])
        needs: tuple[bool, ...] = ()
        if modes().on and self._differentiable:
            needs = tuple([not t.stop_gradient for t in holders])
        if True in needs:
            results = self._run_recorded(holders, needs)
        else:
            arrays = self._run(self._runner, [t._array for t in holders])
            results = {name: Tensor(array) for name, array in zip(self.fetch, arrays, strict=True)}
        results.update(zip(self.inputs, tensors, strict=False))
        self.effects.leave(results, tensors)
        return self.outputs.filled(results)

    def _check_alone(self, arrays: Sequence[np.ndarray]) -> None:
        """Refuse values that share memory with one that is changed in place: the Program would read their old value."""
        owners = [id(owner_of(array)) for array in arrays]
        if len({*owners}) == len(owners):
            return
        for place in self._in_place:
            for other, array in enumerate(arrays):
                if other != place and owners[other] == owners[place] and np.shares_memory(array, arrays[place]):
                    raise InPlaceError(
                        f"{self.label} changes {self.inputs[place]} in place, and {self.inputs[other]} shares its "
                        "memory, and would keep its old value in the traced function; use a copy of either (x.clone())"
                    )

    def _run(self, runner: Runner, arrays: Sequence[np.ndarray]) -> list[Any]:
        count = len(self.arguments)
        self._enter(arrays[count:])
        results = runner.run(dict(zip(self.inputs[:count], arrays, strict=False)), self._scope)
        self._write_back()
        return results

    def _enter(self, arrays: Sequence[np.ndarray]) -> None:
        """Put captured Tensors and current learning rates into the scope."""
        values = self._scope.values
        values.update(zip(self.inputs[len(self.arguments) :], arrays, strict=True))
        for name, source in self.program.schedulers.items():
            values[name] = np.asarray(source.get_lr(), self.program.global_block().var(name).dtype)

    def _write_back(self) -> None:
        """Copy changed values back to the Tensors, unless the Program wrote into their memory."""
        for captured in self.changed:
            array, new = captured.holder._array, self._scope.values[captured.variable.name]
            if new is array:
                note_change(array)
            else:
                write(captured.holder, new)

    def _run_recorded(self, holders: Sequence[Tensor], needs: tuple[bool, ...]) -> dict[str, Any]:
        """Run the function as one operator on the tape."""
        if needs not in self._recorded:
            gradient = GradientProgram(self, needs)
            runner = Runner(self.program, [*self.fetch, *gradient.saved], self.backend)
            self._recorded[needs] = TracedOperator(self, gradient), runner
        definition, runner = self._recorded[needs]
        arrays = [t._array for t in holders]
        results = self._run(runner, arrays)
        sources = [t.source if need else None for t, need in zip(holders, needs, strict=True)]
        node = modes().node(definition, sources, arrays, results, {}, needs)
        tensors = {}
        for slot, name in enumerate(self.fetch):
            tensors[name] = tensor = Tensor(results[slot])
            if name in definition.of_gradient.outputs:
                tensor._node, tensor._slot, tensor.stop_gradient = node, slot, False
        return tensors
