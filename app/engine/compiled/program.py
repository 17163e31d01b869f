"""A Program made native: compiled once for its fetches, then run a batch or many batches at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from math import prod
from typing import Any

import numpy as np

from app.engine import reference
from app.engine.compiled import blas, cache, runtime
from app.engine.compiled.answers import Answers
from app.engine.compiled.buffers import Plan, plan_buffers
from app.engine.compiled.kept import fill_absent
from app.engine.compiled.lower import lower
from app.engine.compiled.parts import Part
from app.engine.compiled.passes import PASSES
from app.engine.compiled.schedule import schedule
from app.engine.compiled.shapes import UnknownSizeError
from app.engine.compiled.source import Source, generate
from app.engine.compiled.steps import Lowered, Step
from app.engine.compiled.threads import helping, threads_worth
from app.engine.compiled.trial import why_not
from app.engine.compiled.workspace import Workspace, Workspaces
from app.errors import AppError, OperatorError, ShapeError
from app.graph.interpret import run_operator
from app.graph.passes import optimise
from app.graph.program import Program
from app.graph.scope import Scope

_ALL_ROWS = np.zeros(0, np.int64)
"""The rows of a batch that is fed as it is: none have to be looked up."""


def _optimised(program: Program, fetch: Sequence[str]) -> Program:
    """The Program after the passes."""
    return optimise(program, set(fetch), PASSES)


class CompiledProgram:
    """The native form of a Program that fetches certain variables; if not `whole`, in parts that are called singly."""

    def __init__(self, program: Program, fetch: Sequence[str], whole: bool = True):
        self.fetch = list(fetch)
        self.lowered: Lowered = lower(_optimised(program, fetch), set(fetch), why_not)
        schedule(self.lowered)
        missing = [name for name in fetch if name not in self.lowered.shapes]
        if missing:
            raise UnknownSizeError(f"nothing computes {', '.join(missing)}")
        self.plan: Plan = plan_buffers(self.lowered, set(fetch))
        self.source: Source = generate(self.lowered, self.plan, list(dict.fromkeys(fetch)), whole)
        self.module = cache.load(self.source.text, self.source.functions)
        self._workspaces = Workspaces(self.lowered, self.plan)
        outputs = {name for step in self.lowered.everything for name in step.op.outputs}
        self._changes_scope = any(self.lowered.persists(name) for name in outputs)

    # Many batches in one call

    @property
    def runs_many(self) -> bool:
        """Whether many batches run in one call: nothing runs in Python, all data has rows, and no fetched shape has."""
        rows = all(self.lowered.has_batch_in_front(name) for name in self.source.data)
        return self.source.is_whole and rows and self.lowered.has_fixed_shapes(self.fetch)

    def run_many(
        self,
        data: dict[str, np.ndarray],
        order: np.ndarray,
        first: int,
        last: int,
        batch: int,
        scope: Scope,
    ) -> list[np.ndarray]:
        """Run batches `first` to `last` of the data in `order`; gives each fetched variable's value at each batch."""
        results = {name: self._result(name, last - first) for name in self.fetch}
        workspace = self._workspaces.take(min(batch, order.size))
        try:
            with self._alone_in(scope):
                self._train(data, order, first, last, batch, scope, results, workspace)
        finally:
            self._workspaces.put_back(workspace)
        return [results[name] for name in self.fetch]

    def _train(
        self,
        data: dict[str, np.ndarray],
        order: np.ndarray,
        first: int,
        last: int,
        batch: int,
        scope: Scope,
        results: dict[str, np.ndarray],
        workspace: Workspace,
    ) -> None:
        arrays = [
            *(np.ascontiguousarray(data[name]) for name in self.source.data),
            *(self._persistable(name, scope) for name in self.source.persistables),
            *workspace.buffers,
            *workspace.kept.arguments,
            *(array.reshape(last - first, prod(array.shape[1:])) for array in results.values()),
        ]
        array = partial(self._array, buffers=workspace.buffers, scope=scope)
        threads = threads_worth(self.lowered, min(batch, order.size), blas.threads())
        self._on_threads(threads, self.module.train, (order, first, last, batch, *arrays), array)

    def _on_threads(
        self,
        shards: int,
        function: Any,
        arguments: tuple[Any, ...],
        array: Callable[[str, int], np.ndarray],
    ) -> None:
        """Run a function on threads; `array` gives the variables of a step for which it calls Python meanwhile."""
        shared = runtime.sharing(shards)
        raised: list[tuple[int, BaseException]] = []

        def work(shard: int) -> None:
            try:
                if function(shard, shards, shared, *arguments):
                    shared[runtime.ABORTED] = 1
            except BaseException as error:
                raised.append((shard, error))
                shared[runtime.ABORTED] = 1

        with blas.single(), runtime.answering(shared, Answers(self.lowered, array, raised)):
            cache.ready(self.module, function, (0, shards, shared, *arguments))
            with helping(work, shards - 1):
                work(0)
        self._raise(raised, shared)

    def _raise(self, raised: list[tuple[int, BaseException]], shared: np.ndarray) -> None:
        if raised:
            shard, error = raised[0]
            if isinstance(error, (AppError, KeyboardInterrupt)):
                raise error
            running = runtime.running(shared, shard)
            users = self.lowered.steps[running].users if running >= 0 else []
            labels = " or ".join(op.definition.label for op in users) or "a compiled operator"
            raise OperatorError(f"{labels}: its function raised {type(error).__name__}: {error}") from error
        if shared[runtime.PROBLEM] >= 0:
            step = self.lowered.steps[runtime.running(shared, int(shared[runtime.PROBLEM]))]
            problems = [getattr(part.op.definition.form, "problem", "") for part in step.everything]
            what = " or ".join(filter(None, problems)) or "it returned a shape other than the declared one"
            raise OperatorError(f"{step.op.definition.label}: {what} (at {step.op})")

    def _alone_in(self, scope: Scope) -> AbstractContextManager[Any]:
        """Inside, no other thread runs a Program that changes values of the scope, if this one does."""
        return scope.changing if self._changes_scope else nullcontext()

    def _result(self, name: str, batches: int) -> np.ndarray:
        shape = self.lowered.shape_at(name, 0)
        return np.empty((batches, *shape), self.lowered.dtype(name))

    def _persistable(self, name: str, scope: Scope) -> np.ndarray:
        """The array of a persistable variable, which compiled code changes in place."""
        value = scope.values.get(name)
        if value is None and not self._is_read_first(name):
            shape = self.lowered.shape_at(name, 0)
            value = scope.values[name] = np.zeros(shape, self.lowered.dtype(name))
        if value is None:
            value = scope.value(name)
        array = np.require(value, self.lowered.dtype(name), ["C", "W"])
        if not _is_whole(array):
            array = array.copy()
        declared = self.lowered.shape_at(name, 0)
        if array.shape != declared:
            raise ShapeError(f"variable {name} is declared with shape {list(declared)}, but has {list(array.shape)}")
        if array is not value and scope.values.get(name) is value:  # another thread may have put a new one there
            scope.values[name] = array
        return array.reshape(1) if array.ndim == 0 else array

    def _is_read_first(self, name: str) -> bool:
        for step in self.lowered.steps:
            if name in step.op.inputs:
                return True
            if name in step.op.outputs:
                return False
        return True

    # One batch

    def run_once(self, feed: dict[str, np.ndarray], scope: Scope) -> list[Any]:
        """Run one batch; gives the fetched values."""
        n = self._batch_size(feed)
        workspace = self._workspaces.take(n)
        try:
            with self._alone_in(scope):
                run = self._run_parts if not self.source.is_whole else self._run_whole
                return run(feed, n, scope, workspace)
        finally:
            self._workspaces.put_back(workspace)

    def _run_whole(self, feed: dict[str, np.ndarray], n: int, scope: Scope, workspace: Workspace) -> list[Any]:
        """One batch in one native call."""
        kept = self.fetch if self.lowered.has_fixed_shapes(self.fetch) else []
        results = {name: self._result(name, 1) for name in kept}
        self._train(feed, np.arange(n), 0, 1, n, scope, results, workspace)
        if kept:
            return [np.array(results[name][0]) for name in self.fetch]
        values = {**feed, **scope.values, **self._views(n, workspace)}
        return [np.array(values[name]) for name in self.fetch]

    def _run_parts(self, feed: dict[str, np.ndarray], n: int, scope: Scope, workspace: Workspace) -> list[Any]:
        """One batch, with Python calls between the compiled parts."""
        values = reference.Values(self.lowered.program.global_block(), feed, scope)
        views = self._views(n, workspace)
        part_at = {part.first: part for part in self.source.parts}
        with_reference = False
        for index, step in enumerate(self.lowered.steps):
            if with_reference or step.is_free:
                values.update(workspace.kept.read_by(step, values, n))
                run_operator(step.op, values)
            elif step.in_python:
                values.update(workspace.kept.read_by(step, values, n))
                self._run_in_python(step, values, views)
                fill_absent(step, self.lowered, values, n)
                with_reference = self._surprising(step.op.outputs, values, n)
            elif index in part_at:
                self._run_part(part_at[index], n, values, views, scope, workspace)
        return [np.array(values[name]) for name in self.fetch]

    def _run_in_python(self, step: Step, values: Any, views: dict[str, np.ndarray]) -> None:
        """Run a step as a Python call, on arrays of its own: it may keep them, or return a part of them."""
        changing = {n for n in step.op.inputs if n and (self.lowered.persists(n) or n in views)}
        own = {n: np.array(values[n]) if n in changing else values[n] for n in step.op.inputs if n}
        run_operator(step.op, own)
        for name in step.op.outputs:
            if name in views:  # what a compiled part made, and the next ones go on with, in new values
                views[name][...] = own[name]
            values[name] = views.get(name, own[name])

    def _run_part(
        self, part: Part, n: int, values: Any, views: dict[str, np.ndarray], scope: Scope, workspace: Workspace
    ) -> None:
        function, arguments, _alive = self._call_of(part, n, values, views, scope, workspace)
        raised: list[tuple[int, BaseException]] = []
        try:
            cache.ready(self.module, function, arguments)
            function(*arguments)
        except BaseException as error:
            raised.append((0, error))
        self._raise(raised, arguments[2])

    def _call_of(
        self, part: Part, n: int, values: Any, views: dict[str, np.ndarray], scope: Scope, workspace: Workspace
    ) -> tuple[Any, tuple[Any, ...], list[Any]]:
        """The function of a part, its arguments, and what has to stay alive while it runs."""
        arrays, alive = [], []
        for name in part.arguments:
            if name in self.lowered.kept:
                array, rows = workspace.kept.argument(name, values)
                alive.append(rows)
            elif self.lowered.persists(name):
                array = self._persistable(name, scope)
            elif name in views and not self.lowered.is_data(name):
                array = views[name]
                values[name] = array
            else:
                array = np.ascontiguousarray(values[self.lowered.root(name)], self.lowered.dtype(name))
                array = array.reshape(self.lowered.shape_at(name, n))
            arrays.append(array.reshape(-1) if self.lowered.comes_flat(name) or array.ndim == 0 else array)
        arguments = 0, 1, runtime.sharing(1), part.first, _ALL_ROWS, n, *arrays
        return getattr(self.module, part.name), arguments, alive

    def calls(self, feed: dict[str, np.ndarray], scope: Scope) -> tuple[list[Callable[[], Any]], Any]:
        """What one batch is, as calls in order, and the values that they left; made again, they take as long again.

        They read what is in the data by then, but of what a Python call makes, what it made at first.
        """
        n = self._batch_size(feed)
        workspace = self._workspaces.new(n)
        values = reference.Values(self.lowered.program.global_block(), feed, scope)
        views = self._views(n, workspace)
        part_at = {part.first: part for part in self.source.parts}
        made: list[Callable[[], Any]] = []
        for index, step in enumerate(self.lowered.steps):
            if step.is_free:
                run_operator(step.op, values)
            elif step.in_python:
                made.append(partial(self._run_in_python, step, values, views))
                made[-1]()
            elif index in part_at:
                self._run_part(part_at[index], n, values, views, scope, workspace)
                function, arguments, _ = self._call_of(part_at[index], n, values, views, scope, workspace)
                made.append(partial(function, *arguments))
        return made, values

    def _views(self, n: int, workspace: Workspace) -> dict[str, np.ndarray]:
        names = [n for n in (*self.plan.place, *self.lowered.roots) if self.lowered.root(n) in self.plan.place]
        return {name: self._view(name, n, workspace.buffers) for name in names}

    def _view(self, name: str, n: int, buffers: Sequence[np.ndarray]) -> np.ndarray:
        """A variable in the buffer that it lies in."""
        shape = self.lowered.shape_at(name, n)
        return buffers[self.plan.place[self.lowered.root(name)]][: prod(shape)].reshape(shape)

    def _array(self, name: str, n: int, buffers: Sequence[np.ndarray], scope: Scope) -> np.ndarray:
        """A variable wherever it lies while compiled code runs."""
        return scope.values[name] if self.lowered.persists(name) else self._view(name, n, buffers)

    def _surprising(self, outputs: Sequence[str], values: Any, n: int) -> bool:
        """Whether a Python call returned another shape than was declared; the rest then runs operator by operator."""
        return any(
            np.shape(values[name]) != self.lowered.shape_at(name, n)
            for name in outputs
            if self.lowered.dtype(name) != "object" and name not in self.lowered.kept
        )

    def fits(self, feed: dict[str, np.ndarray]) -> bool:
        """Whether one batch size explains the shapes of everything fed, as the native form takes for granted.

        A batch without rows is left to the reference engine, as operators may refuse to reduce nothing.
        """
        n = self._batch_size(feed)
        shapes = self.lowered.shapes
        return n > 0 and all(self.lowered.shape_at(x, n) == feed[x].shape for x in feed if x in shapes)

    def _batch_size(self, feed: dict[str, np.ndarray]) -> int:
        return next(
            (feed[n].shape[0] for n in feed if n in self.lowered.shapes and self.lowered.has_batch_in_front(n)), 1
        )


def _is_whole(array: np.ndarray) -> bool:
    """Whether an array is not a part of another, nor of a file: what changes it changes nothing else."""
    return array.flags.owndata or (type(array) is np.ndarray and not isinstance(array.base, (np.ndarray, type(None))))
