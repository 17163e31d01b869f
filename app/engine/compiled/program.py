"""A compiled Program: compiled once for its fetches, then run on one or many batches at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any

import numpy as np

from app.engine.compiled import blas, native_code
from app.engine.compiled.buffers import Plan, plan_buffers
from app.engine.compiled.frozen import Frozen
from app.engine.compiled.lower import lower
from app.engine.compiled.memory import Workspace, Workspaces, persistable
from app.engine.compiled.passes import passes
from app.engine.compiled.piecewise import PiecewiseRun
from app.engine.compiled.schedule import schedule
from app.engine.compiled.shapes import UnknownSizeError
from app.engine.compiled.source import Source, generate
from app.engine.compiled.steps import Lowered
from app.engine.compiled.threads import Worth, run_on_threads
from app.engine.compiled.trial import why_not
from app.graph.passes import optimise
from app.graph.program import Program
from app.graph.scope import Scope
from app.ops.lowering import ByteProduct


def _lowered(program: Program, fetch: Sequence[str], sparse: bool) -> Lowered:
    """Lower a Program after the passes. With Python calls in between, fed data is gathered first and sparsity is not
    used."""
    lowered = lower(optimise(program, set(fetch), passes(sparse)), set(fetch), why_not)
    return _lowered(program, fetch, False) if sparse and any(step.in_python for step in lowered.steps) else lowered


class CompiledProgram:
    """The native form of a Program that fetches certain variables; if not `whole`, in parts that are called one by one.

    A `sparse` one is for data most of whose bytes are 0.
    """

    def __init__(self, program: Program, fetch: Sequence[str], whole: bool = True, sparse: bool = False):
        self.fetch = list(fetch)
        self.lowered = _lowered(program, fetch, sparse and whole)
        self.is_sparse = any(isinstance(step.op.definition.lowering, ByteProduct) for step in self.lowered.steps)
        """Whether some product skips zero bytes."""
        schedule(self.lowered)
        self._worth = Worth(self.lowered.steps)
        missing = [name for name in fetch if name not in self.lowered.shapes]
        if missing:
            raise UnknownSizeError(f"nothing computes {', '.join(missing)}")
        self.plan: Plan = plan_buffers(self.lowered, set(fetch))
        self.source: Source = generate(self.lowered, self.plan, list(dict.fromkeys(fetch)), whole)
        self.code = native_code.load(self.source.pattern, self.source.trees, self.source.functions)
        self._frozen = Frozen(*self.source.functions.values())
        self._workspaces = Workspaces(self.lowered, self.plan)
        outputs = {name for step in self.lowered.everything for name in step.op.outputs}
        self._changes_scope = any(self.lowered.persists(name) for name in outputs)

    @property
    def is_out_of_date(self) -> bool:
        """Return whether a global or closure variable that a function of an operator reads has changed."""
        return self._frozen.have_changed()

    # Many batches in one call

    @property
    def runs_many(self) -> bool:
        """Return whether many batches run in one call: no Python calls, all data has rows, and no fetched shape has."""
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
        """Run batches `first` to `last` of the data in `order`; return each fetched variable's value at each batch."""
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
            *(self._rows(data[name], name) for name in self.source.data),
            *(persistable(name, self.lowered, scope) for name in self.source.persistables),
            *workspace.buffers,
            *(array.reshape(last - first, prod(array.shape[1:])) for array in results.values()),
        ]

        def array(name: str, n: int) -> np.ndarray:
            return scope.values[name] if self.lowered.persists(name) else workspace.view(name, n)

        threads = self._worth.threads(min(batch, order.size), blas.threads())
        arguments = (np.ascontiguousarray(order, np.int64), first, last, batch, *arrays)
        run_on_threads(threads, self.code["train"], arguments, self.lowered, array)

    def _rows(self, array: np.ndarray, name: str) -> np.ndarray:
        """Return fed data as generated code reads it; it may have more rows than a batch."""
        shape = self.lowered.shape_at(name, len(array) if array.ndim else 1)
        return np.require(array, requirements=["C", "A"]).reshape(shape or 1)

    def _alone_in(self, scope: Scope) -> AbstractContextManager[Any]:
        """Exclude other threads that modify the scope, if this Program modifies it."""
        return scope.changing if self._changes_scope else nullcontext()

    def _result(self, name: str, batches: int) -> np.ndarray:
        return np.empty((batches, *self.lowered.shape_at(name, 0)), self.lowered.dtype(name))

    # One batch

    def run_once(self, feed: dict[str, np.ndarray], scope: Scope) -> list[Any]:
        """Run one batch; return the fetched values."""
        n = self._batch_size(feed)
        workspace = self._workspaces.take(n)
        try:
            with self._alone_in(scope):
                if self.source.is_whole:
                    return self._run_whole(feed, n, scope, workspace)
                values = self._piecewise(feed, scope, workspace).run()
                return [np.array(values[name]) for name in self.fetch]
        finally:
            self._workspaces.put_back(workspace)

    def _run_whole(self, feed: dict[str, np.ndarray], n: int, scope: Scope, workspace: Workspace) -> list[Any]:
        """Run one batch in one native call."""
        fetched = self.fetch if self.lowered.has_fixed_shapes(self.fetch) else []
        results = {name: np.empty(self.lowered.shape_at(name, n), self.lowered.dtype(name)) for name in fetched}
        rows = {name: array[np.newaxis] for name, array in results.items()}
        self._train(feed, np.arange(n), 0, 1, n, scope, rows, workspace)
        if fetched:
            return [results[name] for name in self.fetch]
        values = {**scope.values, **feed, **workspace.views()}
        return [np.array(values[name]) for name in self.fetch]

    def _piecewise(self, feed: dict[str, np.ndarray], scope: Scope, workspace: Workspace) -> PiecewiseRun:
        return PiecewiseRun(self.lowered, self.source.parts, self.code, feed, scope, workspace)

    def calls(self, feed: dict[str, np.ndarray], scope: Scope) -> tuple[list[Callable[[], Any]], Any]:
        """Return the calls of one batch in order, and their values. The calls can be repeated for timing. They read the
        current data, but outputs of Python calls keep their first values.
        """
        run = self._piecewise(feed, scope, self._workspaces.new(self._batch_size(feed)))
        return run.calls(), run.values

    def fits(self, feed: dict[str, np.ndarray]) -> bool:
        """Return whether all fed shapes agree with one batch size, as the native form assumes. Empty batches run on the
        reference engine, because operators may refuse to reduce empty arrays.
        """
        n = self._batch_size(feed)
        shapes = self.lowered.shapes
        return n > 0 and all(self.lowered.shape_at(x, n) == feed[x].shape for x in feed if x in shapes)

    def _batch_size(self, feed: dict[str, np.ndarray]) -> int:
        return next(
            (feed[n].shape[0] for n in feed if n in self.lowered.shapes and self.lowered.has_batch_in_front(n)), 1
        )
