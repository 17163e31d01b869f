"""Passes: functions from a Program to a Program that changes nothing but cost, each in a file of its own.

`keep` names the variables that will be fetched, which no pass may remove.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from app.graph.passes.common import common
from app.graph.passes.constants import constants
from app.graph.passes.dead_code import dead_code
from app.graph.passes.fusion import fusion
from app.graph.passes.steps import steps
from app.graph.program import Operator, Program

Pass = Callable[[Program, Collection[str]], Program]

PIPELINE: tuple[Pass, ...] = (constants, common, dead_code, steps)
"""What the compiled engine runs, in order, before fusion."""


def optimise(program: Program, keep: Collection[str], joins: Callable[[Operator], bool] = lambda op: True) -> Program:
    """The Program after every pass; `joins` says of an elementwise operator whether it may run in others' loop."""
    passes: tuple[Pass, ...] = (*PIPELINE, partial(fusion, joins=joins), dead_code)
    for each in passes:
        program = each(program, keep)
    return program
