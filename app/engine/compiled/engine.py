"""The compiled engine: each Program becomes native code when it is first run, and is run as that from then on."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import config

from app.engine.compiled.program import CompiledProgram
from app.engine.compiled.sizes import UnknownSizeError
from app.engine.compiled.teamwork import Teamwork
from app.engine.reference import ReferenceEngine, stacked
from app.engine.team import Team
from app.errors import ProgramError
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

    def __init__(self, team: Team | None = None) -> None:
        self._reference = ReferenceEngine()
        self._team = team
        self._works: weakref.WeakKeyDictionary[CompiledProgram, Teamwork] = weakref.WeakKeyDictionary()

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
        if self._team is not None:
            return self._run_together(self._team, native, dataset, feeds, scope)
        if isinstance(native, str) or not (hasattr(dataset, "arrays") and _fits(native, dataset)):
            rows = [self.run(program, dict(zip(feeds, batch, strict=True)), fetch, scope) for batch in dataset]
            return stacked(rows, len(fetch))
        return _run_native(native, dataset, feeds, scope)

    def _run_together(
        self,
        team: Team,
        native: CompiledProgram | str,
        dataset: Any,
        feeds: Sequence[str],
        scope: Scope,
    ) -> list[np.ndarray]:
        """Run a Program on each batch, with the other processes of a team."""
        why = _why_alone(native)
        if not (isinstance(native, str) or why or _fits(native, dataset)):
            why = f"its shapes follow other rules in batches of {dataset.batch_size}"
        if isinstance(native, str) or why:
            raise ProgramError(f"this Program cannot be shared out by rows: {why}")
        if native not in self._works:
            self._works[native] = native.teamwork(team)
        return _run_native(native, dataset, feeds, scope, self._works[native])


def _fits(native: CompiledProgram, dataset: Any) -> bool:
    return native.fits_batches(len(_order(dataset)), dataset.batch_size)


def _order(dataset: Any) -> np.ndarray:
    """Which rows of the arrays the batches have."""
    return np.arange(len(dataset.arrays[0])) if dataset.order is None else dataset.order


def _run_native(
    native: CompiledProgram, dataset: Any, feeds: Sequence[str], scope: Scope, work: Teamwork | None = None
) -> list[np.ndarray]:
    data = dict(zip(feeds, dataset.arrays, strict=True))
    return native.run_many(data, _order(dataset), 0, len(dataset), dataset.batch_size, scope, work)


def why_not_together(program: Program, fetch: Sequence[str]) -> str:
    """Why processes cannot run a Program together; '' if they can."""
    return _why_alone(compile_program(program, fetch))


def _why_alone(native: CompiledProgram | str) -> str:
    if isinstance(native, str):
        return native
    calls = [
        step.op.definition.label for step in native.lowered.everything if step.in_python or step.kind == "in_place"
    ]
    if calls:
        return f"{calls[0]} runs as a Python call"
    if native.lowered.kept or not native.runs_many:
        return "what it fetches, or keeps of a loop, has a size that only the run will tell"
    return ""
