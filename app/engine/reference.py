"""The reference engine: the shortest correct loop over a Program. Other engines are tested against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from app.errors import ProgramError
from app.graph.interpret import RunValue, run_operators
from app.graph.program import Block, Program
from app.graph.scope import Scope

Dataset: TypeAlias = "Iterable[Sequence[np.ndarray]]"
"""Batches; each has one array for each fed variable."""


class ReferenceEngine:
    """Runs every operator in order; persistable results are stored in the scope, the others are dropped."""

    def run(self, program: Program, feed: dict[str, np.ndarray], fetch: Sequence[str], scope: Scope) -> list[RunValue]:
        """Run a Program once; returns the fetched values."""
        block = program.global_block()
        values = Values(block, feed, scope)
        run_operators(block.ops, values)
        return [values[name] for name in fetch]

    def run_many(
        self, program: Program, dataset: Dataset, feeds: Sequence[str], fetch: Sequence[str], scope: Scope
    ) -> list[np.ndarray]:
        """Run a Program on each batch of a dataset; returns the values of each fetched variable at all batches."""
        rows = [self.run(program, dict(zip(feeds, batch, strict=True)), fetch, scope) for batch in dataset]
        return stacked(rows, len(fetch))


def stacked(rows: Sequence[Sequence[RunValue]], width: int) -> list[np.ndarray]:
    """The values of each variable at all batches, stacked; an object array if their shapes differ."""
    columns = [[np.asarray(row[i]) for row in rows] for i in range(width)]
    return [_stack(values) for values in columns]


def _stack(values: list[np.ndarray]) -> np.ndarray:
    if len({value.shape for value in values}) < 2:
        return np.array(values)
    column = np.empty(len(values), object)
    column[:] = values
    return column


class Values(dict[str, RunValue]):
    """The values of one run; persistable ones are read from and written to the scope."""

    def __init__(self, block: Block, feed: dict[str, np.ndarray], scope: Scope):
        super().__init__(feed)
        self._scope = scope.values
        self._persistable = {name for name, variable in block.vars.items() if variable.persistable}

    def __missing__(self, name: str) -> RunValue:
        if name in self._scope:
            return self._scope[name]
        if name in self._persistable:
            raise ProgramError(f"variable {name} has no value yet: run the startup program first")
        raise ProgramError(f"variable {name} has no value: no operator computes it, and it was not fed")

    def __setitem__(self, name: str, value: RunValue) -> None:
        if name in self._persistable:
            self._scope[name] = np.asarray(value)
        else:
            super().__setitem__(name, value)
