"""A Program made native: compiled once for its fetches, then run a batch or many batches at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.engine import reference
from app.engine.compiled import blas, cache, runtime
from app.engine.compiled.buffers import Plan, plan_buffers
from app.engine.compiled.lowering import Lowered, lower
from app.engine.compiled.sizes import N
from app.engine.compiled.source import Part, Source, Writer
from app.engine.compiled.verdict import why_not
from app.engine.scope import Scope
from app.errors import OperatorError
from app.graph.passes import optimise
from app.graph.program import Program


class CompiledProgram:
    """The native form of a Program that fetches certain variables."""

    def __init__(self, program: Program, fetch: Sequence[str]):
        self.fetch = list(fetch)
        self.lowered: Lowered = lower(optimise(program, set(fetch)), set(fetch), why_not)
        self.plan: Plan = plan_buffers(self.lowered, set(fetch))
        self.source: Source = Writer(self.lowered, self.plan, list(dict.fromkeys(fetch))).write()
        self.module = cache.load(self.source.text, self.source.functions)
        self._buffers: dict[int, list[np.ndarray]] = {}

    # Many batches in one call

    @property
    def runs_many(self) -> bool:
        """Whether many batches run in one call: nothing runs in Python, and no fetched shape depends on the batch."""
        return self.source.whole and self.lowered.has_fixed_shapes(self.fetch)

    def run_many(
        self, data: dict[str, np.ndarray], order: np.ndarray, first: int, last: int, batch: int, scope: Scope
    ) -> list[np.ndarray]:
        """Run batches `first` to `last` of the data in `order`; gives each fetched variable's value at each batch."""
        results = {name: self._result(name, last - first) for name in self.fetch}
        self._train(data, order, first, last, batch, scope, results)
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
    ) -> None:
        arrays = [
            *(np.ascontiguousarray(data[name]) for name in self.source.data),
            *(self._persistable(name, scope) for name in self.source.persistables),
            *self._buffers_for(min(batch, order.size)),
            *(array.reshape(last - first, -1) for array in results.values()),
        ]
        self._on_threads(self.module.train, (order, first, last, batch, *arrays))

    def _on_threads(self, function: Any, arguments: tuple[Any, ...]) -> None:
        shards = blas.threads()
        shared = np.zeros(runtime.SHARED, np.int64)
        shared[runtime.PROBLEM] = -1
        raised: list[BaseException] = []

        def work(shard: int) -> None:
            try:
                if function(shard, shards, shared, *arguments):
                    shared[runtime.ABORTED] = 1
            except BaseException as error:
                raised.append(error)
                shared[runtime.ABORTED] = 1

        with blas.single():
            if shards > 1 and not function.signatures:
                self._compile(function, shared, arguments)
            others = [threading.Thread(target=work, args=(s,)) for s in range(1, shards)]
            for thread in others:
                thread.start()
            work(0)
            for thread in others:
                thread.join()
        self._raise(raised, int(shared[runtime.PROBLEM]))

    def _compile(self, function: Any, shared: np.ndarray, arguments: tuple[Any, ...]) -> None:
        """Compile, or load from the cache, on one thread, by a call over no batches."""
        order, _, _, batch, *arrays = arguments
        function(0, 1, shared, order, 0, 0, batch, *arrays)

    def _raise(self, raised: list[BaseException], problem: int) -> None:
        if raised:
            error = raised[0]
            if not isinstance(error, Exception):
                raise error
            raise OperatorError(f"a compiled operator raised {type(error).__name__}: {error}") from error
        if problem >= 0:
            step = self.lowered.steps[problem]
            what = getattr(step.op.definition.form, "problem", "") or "it returned a shape other than the declared one"
            raise OperatorError(f"{step.op.definition.label}: {what} (at {step.op})")

    def _buffers_for(self, n: int) -> list[np.ndarray]:
        if n not in self._buffers:
            self._buffers.clear()
            self._buffers[n] = [np.empty(b.elements(n), b.dtype) for b in self.plan.buffers]
        return self._buffers[n]

    def _result(self, name: str, batches: int) -> np.ndarray:
        shape = [size.plus for size in self.lowered.shapes[name]]
        return np.empty((batches, *shape), self.lowered.dtype(name))

    def _persistable(self, name: str, scope: Scope) -> np.ndarray:
        """The array of a persistable variable, which compiled code changes in place."""
        value = scope.values.get(name)
        if value is None and not self._is_read_first(name):
            shape = [size.plus for size in self.lowered.shapes[name]]
            value = np.zeros(shape, self.lowered.dtype(name))
        array = np.require(scope.value(name) if value is None else value, self.lowered.dtype(name), ["C", "W", "O"])
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
        if not self.source.whole:
            return self._run_parts(feed, n, scope)
        results = {name: self._result(name, 1) for name in self.fetch} if self.runs_many else {}
        self._train(feed, np.arange(n), 0, 1, n, scope, results)
        values = {**feed, **scope.values, **self._views(n)}
        return [np.array(values[name]) for name in self.fetch]

    def _run_parts(self, feed: dict[str, np.ndarray], n: int, scope: Scope) -> list[Any]:
        """One batch, with Python calls between the compiled parts."""
        values = reference.Values(self.lowered.program.global_block(), feed, scope)
        views = self._views(n)
        parts = iter(self.source.parts)
        started: set[int] = set()
        with_reference = False
        current: Part | None = None
        for index, step in enumerate(self.lowered.steps):
            if with_reference or step.in_python or step.kind in ("constant", "alias"):
                reference.run_operator(step.op, values)
                with_reference = with_reference or (step.in_python and self._surprising(step.op.outputs, values, n))
                continue
            if current is None or index not in {i for i, _ in current.steps}:
                current = next(parts)
            if id(current) not in started:
                started.add(id(current))
                self._run_part(current, n, values, views, scope)
        return [np.array(values[name]) for name in self.fetch]

    def _run_part(self, part: Part, n: int, values: Any, views: dict[str, np.ndarray], scope: Scope) -> None:
        arrays = []
        for name in part.arguments:
            if self.lowered.persists(name):
                array = self._persistable(name, scope)
            elif name in views and not self.lowered.is_data(name):
                array = views[name]
                values[name] = array
            else:
                array = np.ascontiguousarray(values[name], self.lowered.dtype(name))
            arrays.append(array.reshape(1) if array.ndim == 0 else array)
        shared = np.zeros(runtime.SHARED, np.int64)
        shared[runtime.PROBLEM] = -1
        raised: list[BaseException] = []
        try:
            getattr(self.module, part.name)(0, 1, shared, n, *arrays)
        except Exception as error:
            raised.append(error)
        self._raise(raised, int(shared[runtime.PROBLEM]))

    def _views(self, n: int) -> dict[str, np.ndarray]:
        buffers = self._buffers_for(n)
        views = {}
        for name in [*self.plan.place, *self.lowered.roots]:
            root = self.lowered.root(name)
            if root in self.plan.place:
                shape = [size.at(n) for size in self.lowered.shapes[name]]
                views[name] = buffers[self.plan.place[root]][: int(np.prod(shape))].reshape(shape)
        return views

    def _surprising(self, outputs: Sequence[str], values: Any, n: int) -> bool:
        """Whether a Python call returned another shape than was declared; the rest then runs operator by operator."""
        return any(
            np.shape(values[name]) != tuple(s.at(n) for s in self.lowered.shapes[name])
            for name in outputs
            if self.lowered.dtype(name) != "object"
        )

    def fits(self, feed: dict[str, np.ndarray]) -> bool:
        """Whether one batch size explains the shapes of everything fed, as the native form takes for granted."""
        n = self._batch_size(feed)
        shapes = self.lowered.shapes
        return all(tuple(s.at(n) for s in shapes[name]) == feed[name].shape for name in feed if name in shapes)

    def _batch_size(self, feed: dict[str, np.ndarray]) -> int:
        return next((feed[n].shape[0] for n in feed if self.lowered.shapes.get(n, ())[:1] == (N,)), 1)
