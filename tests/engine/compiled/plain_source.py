"""Generated source run as plain Python: no compiling, so hundreds of programs are tested in the time of a few."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from app.engine.compiled import runtime
from app.engine.compiled.program import CompiledProgram
from app.engine.compiled.shapes import UnknownSizeError
from app.engine.reference import ReferenceEngine


def _product(x: Any, turn_x: bool, y: Any, turn_y: bool, out: Any, lo: int, hi: int, alpha: Any, beta: Any) -> None:
    left, right = x.T if turn_x else x, y.T if turn_y else y
    out[lo:hi] = beta * (out[lo:hi] if beta else 0) + alpha * (left[lo:hi] @ right)


class _Meeting:
    """`meet` for threads under Python's lock."""

    def __init__(self, shards: int):
        self._barrier = threading.Barrier(shards)

    def __call__(self, shared: Any, shards: int) -> bool:
        if shards == 1 or shared[runtime.LEFT]:
            return shards > 1
        try:
            self._barrier.wait(10)
        except threading.BrokenBarrierError:
            return True
        return False


def _write_down(results: np.ndarray, row: int, value: np.ndarray) -> None:
    results[row, : value.size] = value


class Plain:
    """A function of generated source as the Python that it is printed as."""

    def __init__(self, function: Any):
        self._function = function

    def bound(self, arguments: Any) -> Any:
        return lambda shard, shards: self._function(shard, shards, *arguments)


def left_plain(native: CompiledProgram, shards: int) -> CompiledProgram:
    """The native form with every function of its source as the plain Python that it was written in."""
    names: dict[str, Any] = dict(native.source.functions)
    exec(native.source.text, names)
    names.update({name: getattr(value, "py_func", value) for name, value in names.items()})
    native.code = {name: Plain(names[name]) for name in native.source.trees}  # type: ignore[assignment]
    names.update(product32=_product, product64=_product, meet=_Meeting(shards))
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
        if self._native is None:
            try:
                self._native = left_plain(CompiledProgram(program, fetch), self.shards)
            except UnknownSizeError as error:
                self._native = ReferenceEngine()
                self.fallbacks.append(str(error))
        if isinstance(self._native, ReferenceEngine) or not self._native.fits(feed):
            return ReferenceEngine().run(program, feed, fetch, scope)
        return self._native.run_once(feed, scope)
