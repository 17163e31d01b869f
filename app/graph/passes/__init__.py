"""Passes: functions from a Program to an equivalent, faster Program, each in a file of its own.

`keep` has the names of the variables that will be fetched, which no pass may remove.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

from app.graph.passes.common import common
from app.graph.passes.constants import constants
from app.graph.passes.dead_code import dead_code
from app.graph.passes.fusion import fusion
from app.graph.passes.rewrite import Rewrite, inside_too
from app.graph.passes.steps import steps
from app.graph.program import Program


class Pass(NamedTuple):
    """A pass and its name."""

    name: str
    run: Rewrite


BEFORE_FUSION = (
    Pass("constants", inside_too(constants)),
    Pass("common", inside_too(common)),
    Pass("dead_code", dead_code),
    Pass("steps", inside_too(steps)),
)
"""The passes of every engine, in order. An engine then fuses what it can run in one loop."""

PIPELINE = (*BEFORE_FUSION, Pass("fusion", inside_too(fusion)), Pass("dead_code", dead_code))
"""The passes with fusion of all elementwise operators."""


def after_each(passes: Sequence[Pass], program: Program, keep: Collection[str]) -> Iterator[tuple[Pass, Program]]:
    """Each pass, with the Program after it."""
    for each in passes:
        program = each.run(program, keep)
        yield each, program


def optimise(program: Program, keep: Collection[str], passes: Sequence[Pass] = PIPELINE) -> Program:
    """Apply all passes; returns the resulting Program."""
    return reduce(lambda before, each: each.run(before, keep), passes, program)
