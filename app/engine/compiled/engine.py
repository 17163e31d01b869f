"""The compiled engine: it compiles a Program to native code on its first run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import config

from app.engine.compiled.program import CompiledProgram
from app.engine.compiled.shapes import UnknownSizeError
from app.engine.reference import ReferenceEngine, stacked
from app.graph.cache import ProgramCache
from app.graph.program import Program
from app.graph.scope import Scope

_compiled: ProgramCache[tuple[bool, tuple[str, ...]], CompiledProgram | str] = ProgramCache()

MOST_SET = 0.4
"""Zero bytes are skipped if less than this fraction of the bytes is nonzero. At 100 columns and more the products were
still faster than BLAS with two thirds of the bytes set, and at 32 columns with half of them."""
LOOKED_AT = 64
"""The number of rows sampled to count zero bytes."""


def compile_program(program: Program, fetch: Sequence[str], sparse: bool = False) -> CompiledProgram | str:
    """Return the native form of a Program, or the reason as text if it has none.

    It is cached until the Program, or a variable that a function of its operators reads, changes. It may be for
    `sparse` data, most of whose bytes are 0.
    """

    def cached() -> CompiledProgram | str:
        return _compiled.get(program, (sparse, tuple(fetch)), lambda: _compile(program, fetch, sparse))

    native = cached()
    if not isinstance(native, str) and native.is_out_of_date:
        _compiled.forget(program)
        native = cached()
    return native


def are_sparse(arrays: Sequence[Any]) -> bool:
    """Return whether the data has rows of bytes that are mostly 0, judged from evenly spaced rows."""
    of_bytes = [a for a in arrays if isinstance(a, np.ndarray) and a.dtype == np.uint8 and a.ndim > 1 and a.size]
    rows = [array[:: -(-len(array) // LOOKED_AT)] for array in of_bytes]
    return bool(rows) and all(np.count_nonzero(some) < MOST_SET * some.size for some in rows)


def _can_be_gathered(dataset: Any) -> bool:
    """Return whether native code, which does not check, may read the rows that a dataset names from its arrays."""
    if not hasattr(dataset, "arrays"):
        return False
    counts, order = [len(array) for array in dataset.arrays], dataset.order
    if order is None:
        return len(set(counts)) == 1
    return not order.size or (order.min() >= 0 and order.max() < min(counts))


def _compile(program: Program, fetch: Sequence[str], sparse: bool) -> CompiledProgram | str:
    block = program.global_block()
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # Numba sets it when it is loaded
        return "NUMBA_DISABLE_JIT switches compiling off"
    if not any(v.is_data for v in block.vars.values()) and not any(op.bodies for op in block.ops):
        return "it takes no data, as a startup Program, and is run once"
    try:
        native = CompiledProgram(program, fetch, sparse=sparse)
    except UnknownSizeError as error:
        return str(error)
    return native if native.is_sparse or not sparse else compile_program(program, fetch)


class CompiledEngine:
    """Runs Programs natively; one that has no native form runs on the reference engine.

    For a dataset with mostly zero bytes, matrix products skip these, unless `sparse` is False.
    """

    def __init__(self, sparse: bool = True) -> None:
        self._sparse = sparse
        self._reference = ReferenceEngine()

    def run(self, program: Program, feed: dict[str, np.ndarray], fetch: Sequence[str], scope: Scope) -> list[Any]:
        """Run a Program once; return the fetched values."""
        native = compile_program(program, fetch)
        if isinstance(native, str) or not native.fits(feed):
            return self._reference.run(program, feed, fetch, scope)
        return native.run_once(feed, scope)

    def run_many(
        self, program: Program, dataset: Any, feeds: Sequence[str], fetch: Sequence[str], scope: Scope
    ) -> list[np.ndarray]:
        """Run a Program on each batch of a dataset; return each fetched variable's value at every batch."""
        sparse = self._sparse and are_sparse(getattr(dataset, "arrays", ()))
        native = compile_program(program, fetch, sparse)
        if isinstance(native, str) or not (native.runs_many and _can_be_gathered(dataset)):
            rows = [self.run(program, dict(zip(feeds, batch, strict=True)), fetch, scope) for batch in dataset]
            return stacked(rows, len(fetch))
        data = dict(zip(feeds, dataset.arrays, strict=True))
        order = np.arange(len(dataset.arrays[0])) if dataset.order is None else dataset.order
        return native.run_many(data, order, 0, len(dataset), dataset.batch_size, scope)
