"""Generated source run as plain Python: no compiling, so hundreds of programs are tested in the time of a few."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from app.engine.compiled import blas, runtime, steps, threads
from app.engine.compiled.program import CompiledProgram
from app.engine.compiled.shapes import UnknownSizeError
from app.engine.reference import ReferenceEngine


def _product(x: Any, turn_x: bool, y: Any, turn_y: bool, out: Any, lo: int, hi: int, alpha: Any, beta: Any) -> None:
    left, right = x.T if turn_x else x, y.T if turn_y else y
    out[lo:hi] = beta * (out[lo:hi] if beta else 0) + alpha * (left[lo:hi] @ right)


class _Turns:
    """Between two barriers, one thread runs after the other, from the first or from the last one in turn. So a barrier
    that is missing changes the results each time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._thread = threading.local()
        self._ended: Counter[int] = Counter()
        """How many threads have come to the end of each stretch between barriers."""
        self._has_left = False

    def run(self, function: Any, shard: int, shards: int, arguments: Any) -> bool:
        self._thread.shard, self._thread.stretch = shard, 0
        aborted = True
        self._wait(shards)
        try:
            aborted = bool(function(shard, shards, *arguments))
        finally:
            self._end(aborted)
        return aborted

    def meet(self, shared: Any, shards: int) -> bool:
        if shards > 1:
            self._end(bool(shared[runtime.LEFT]))
            self._wait(shards)
        return shards > 1 and self._has_left

    def _end(self, left: bool) -> None:
        with self._changed:
            self._ended[self._thread.stretch] += 1
            self._thread.stretch += 1
            self._has_left |= left
            self._changed.notify_all()

    def _wait(self, shards: int) -> None:
        stretch, shard = self._thread.stretch, self._thread.shard
        place = shard if stretch % 2 else shards - 1 - shard

        def is_next() -> bool:
            before = stretch == 0 or self._ended[stretch - 1] == shards
            return self._has_left or (before and self._ended[stretch] == place)

        with self._changed:
            assert self._changed.wait_for(is_next, 10)


def _write_down(results: np.ndarray, row: int, value: np.ndarray) -> None:
    results[row, : value.size] = value


class Plain:
    """A function of generated source as the Python that it is printed as."""

    def __init__(self, function: Any, names: dict[str, Any]):
        self._function, self._names = function, names

    def bound(self, arguments: Any) -> Any:
        turns = _Turns()
        self._names["meet"] = turns.meet
        return lambda shard, shards: turns.run(self._function, shard, shards, arguments)


@contextmanager
def small_shares() -> Iterator[None]:
    """Within, threads share out whatever has two rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "FOR_EACH", 1)
        patch.setattr(steps, "SMALL", 2)
        patch.setattr(runtime, "GRAIN", 1)
        yield


def left_plain(native: CompiledProgram) -> CompiledProgram:
    """The native form with every function of its source as the plain Python that it was written in."""
    names: dict[str, Any] = dict(native.source.functions)
    exec(native.source.text, names)
    names.update({name: getattr(value, "py_func", value) for name, value in names.items()})
    native.code = {name: Plain(names[name], names) for name in native.source.trees}  # type: ignore[assignment]
    names.update(product32=_product, product64=_product)
    names.update(write_down=_write_down, fetch_ahead=lambda data, rows, i: None)
    names.update(read_only=lambda array: array, copied=np.copy)
    return native


class PlainEngine:
    """The compiled engine without compiling; `fallbacks` holds why Programs were left to the reference engine."""

    def __init__(self, shards: int = 1):
        self.shards = shards
        self.fallbacks: list[str] = []
        self._native: Any = None

    def run(self, program: Any, feed: dict[str, np.ndarray], fetch: Any, scope: Any) -> list[Any]:
        with small_shares(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(blas, "threads", lambda: self.shards)
            return self._run(program, feed, fetch, scope)

    def _run(self, program: Any, feed: dict[str, np.ndarray], fetch: Any, scope: Any) -> list[Any]:
        if self._native is None:
            try:
                self._native = left_plain(CompiledProgram(program, fetch))
            except UnknownSizeError as error:
                self._native = ReferenceEngine()
                self.fallbacks.append(str(error))
        if isinstance(self._native, ReferenceEngine) or not self._native.fits(feed):
            return ReferenceEngine().run(program, feed, fetch, scope)
        return self._native.run_once(feed, scope)
