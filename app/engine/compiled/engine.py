"""The compiled engine: each Program becomes native code when it is first run, and is run as that from then on."""

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

_compiled: ProgramCache[tuple[str, ...], CompiledProgram | str] = ProgramCache()


def compile_program(program: Program, fetch: Sequence[str]) -> CompiledProgram | str:
    """The native form of a Program, made once for as long as it stays as it is; or, as text, why it has none."""
    return _compiled.get(program, tuple(fetch), lambda: _compile(program, fetch))


def _compile(program: Program, fetch: Sequence[str]) -> CompiledProgram | str:
    block = program.global_block()
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # Numba sets it when it is loaded
        return "NUMBA_DISABLE_JIT switches compiling off"
    if not any(v.is_data for v in block.vars.values()) and not any(op.bodies for op in block.ops):
        return "it takes no data, as a startup Program, and is run once"
    try:
        return CompiledProgram(program, fetch)
    except UnknownSizeError as error:
        return str(error)


class CompiledEngine:
    """Runs Programs natively; one that has no native form runs on the reference engine."""

    def __init__(self) -> None:
        self._reference = ReferenceEngine()

    def run(self, program: Program, feed: dict[str, np.ndarray], fetch: Sequence[str], scope: Scope) -> list[Any]:
        """Run a Program once; gives the fetched values."""
        native = compile_program(program, fetch)
        if isinstance(native, str) or not native.fits(feed):
            return self._reference.run(program, feed, fetch, scope)
        return native.run_once(feed, scope)

    def run_many(
        self, program: Program, dataset: Any, feeds: Sequence[str], fetch: Sequence[str], scope: Scope
    ) -> list[np.ndarray]:
        """Run a Program on each batch of a dataset; gives each fetched variable's value at every batch."""
        native = compile_program(program, fetch)
        if isinstance(native, str) or not (native.runs_many and hasattr(dataset, "arrays")):
            rows = [self.run(program, dict(zip(feeds, batch, strict=True)), fetch, scope) for batch in dataset]
            return stacked(rows, len(fetch))
        data = dict(zip(feeds, dataset.arrays, strict=True))
        order = np.arange(len(dataset.arrays[0])) if dataset.order is None else dataset.order
        return native.run_many(data, order, 0, len(dataset), dataset.batch_size, scope)
