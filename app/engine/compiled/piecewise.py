"""One batch of a Program with Python calls in it: compiled parts, and between them operators that run as Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from app.engine import reference
from app.engine.compiled import blas, runtime
from app.engine.compiled.kinds.view import ConstantStep
from app.engine.compiled.memory import Workspace, persistable
from app.engine.compiled.native_code import NativeCode
from app.engine.compiled.parts import Part
from app.engine.compiled.steps import Lowered, Step
from app.engine.compiled.threads import Callback, run_on_threads
from app.graph.interpret import run_operator
from app.graph.scope import Scope

_ALL_ROWS = np.zeros(0, np.int64)
"""The order of a batch that is fed directly: no rows are looked up."""


class PiecewiseRun:
    """The run of one batch, with the memory of its values."""

    def __init__(
        self,
        lowered: Lowered,
        parts: Sequence[Part],
        code: NativeCode,
        feed: dict[str, np.ndarray],
        scope: Scope,
        workspace: Workspace,
    ):
        self._lowered, self._code, self._scope, self._workspace = lowered, code, scope, workspace
        self._part_at = {part.first: part for part in parts}
        self._views = workspace.views()
        self.values: Any = reference.Values(lowered.program.global_block(), feed, scope)

    def run(self) -> Any:
        """Run every step; return the values by name. If a Python call returns another shape than declared, the other
        operators run one by one, in the order of the Program.
        """
        executed: set[int] = set()
        for step, part in self._steps():
            executed.add(id(step.op))
            if step.is_free:
                run_operator(step.op, self.values)
            elif step.in_python:
                self._run_in_python(step)
                if self._has_other_shapes(step.op.outputs):
                    break
            elif part is not None:
                self._run_part(part)
        for op in self._lowered.program.global_block().ops:
            if id(op) not in executed:
                run_operator(op, self.values)
        return self.values

    def calls(self) -> list[Callable[[], Any]]:
        """Return the parts and Python calls in order as repeatable calls. Each is run once here."""
        calls: list[Callable[[], Any]] = []
        for step, part in self._steps():
            if step.is_free:
                run_operator(step.op, self.values)
            elif step.in_python:
                calls.append(partial(self._run_in_python, step))
                calls[-1]()
            elif part is not None:
                self._run_part(part)
                calls.append(self._repeatable(part))
        return calls

    def _repeatable(self, part: Part) -> Callable[[], Any]:
        """Return the call of a part on one thread."""
        function, arguments = self._call_of(part)
        shared = runtime.sharing(1)
        callback = Callback(shared, self._lowered, self._workspace.view)
        run = function.bound((shared, *arguments))

        def call(_callback: Callback = callback) -> None:
            run(0, 1)

        return call

    def _steps(self) -> Iterator[tuple[Step, Part | None]]:
        """The steps in order, each with the part that begins with it, if one does. Constants are in the source of the
        steps that read them, and come before the values that their shapes are of."""
        for number, step in enumerate(self._lowered.steps):
            if not isinstance(step, ConstantStep):
                yield step, self._part_at.get(number)

    def _run_in_python(self, step: Step) -> None:
        """Run a step as a Python call on copies of arrays: it may keep them or return views of them."""
        changing = {n for n in step.op.inputs if n and (self._lowered.persists(n) or n in self._views)}
        own = {n: np.array(self.values[n]) if n in changing else self.values[n] for n in step.op.inputs if n}
        run_operator(step.op, own)
        for name in step.op.outputs:
            if name in self._views:  # compiled parts use the new values in the same memory
                self._views[name][...] = own[name]
            self.values[name] = self._views.get(name, own[name])

    def _has_other_shapes(self, outputs: Sequence[str]) -> bool:
        """Return whether any output of a Python call has another shape than declared."""
        return any(
            np.shape(self.values[name]) != self._lowered.shape_at(name, self._workspace.rows) for name in outputs
        )

    def _run_part(self, part: Part) -> None:
        function, arguments = self._call_of(part)
        threads = part.worth.threads(self._workspace.rows, blas.threads())
        run_on_threads(threads, function, arguments, self._lowered, self._workspace.view)

    def _call_of(self, part: Part) -> tuple[Any, tuple[Any, ...]]:
        """Return the function of a part, and its arguments after the thread's."""
        lowered, workspace = self._lowered, self._workspace
        arrays = []
        for name in part.arguments:
            if lowered.persists(name):
                array = persistable(name, lowered, self._scope)
            elif name in self._views and not lowered.is_data(name):
                array = self._views[name]
                self.values[name] = array
            else:
                array = np.ascontiguousarray(self.values[lowered.root(name)], lowered.dtype(name))
                array = array.reshape(lowered.shape_at(name, workspace.rows))
            arrays.append(array.reshape(-1) if lowered.comes_flat(name) or array.ndim == 0 else array)
        arguments = part.first, _ALL_ROWS, workspace.rows, *arrays
        return self._code[part.name], arguments
