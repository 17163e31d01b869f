"""Passes: functions from a Program to an equivalent, faster Program, each in a file of its own.

`keep` has the names of the variables that will be fetched, which no pass may remove.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

from app.graph.passes.rewrite import Rewrite
from app.graph.program import Program


class Pass(NamedTuple):
    """A pass and its name."""

    name: str
    run: Rewrite


def after_each(passes: Sequence[Pass], program: Program, keep: Collection[str]) -> Iterator[tuple[Pass, Program]]:
    """Each pass, with the Program after it."""
    for each in passes:
        program = each.run(program, keep)
        yield each, program


def optimise(program: Program, keep: Collection[str], passes: Sequence[Pass]) -> Program:
    """Apply passes in order; returns the resulting Program."""
    return reduce(lambda before, each: each.run(before, keep), passes, program)
