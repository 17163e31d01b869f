"""A Program run operator by operator, each shown with what it read and made: slow, and for finding what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from app.engine.reference import Values
from app.errors import AppError
from app.graph.interpret import run_operator
from app.graph.program import Operator, Program
from app.graph.scope import Scope
from app.ops.look import Look
from app.ops.spec import UNKNOWN


def looks_at(program: Program, feed: Mapping[str, np.ndarray], scope: Scope) -> Iterator[Look]:
    """Run a Program as the reference engine does; gives each operator once it has run.

    What an operator raises is told with the operator before it, if any, that made another shape than was declared.
    """
    block = program.global_block()
    values, surprise = Values(block, dict(feed), scope), ""
    rows = next((value.shape[0] for value in feed.values() if value.ndim), UNKNOWN)
    for operator in block.ops:
        read = [(name, np.asarray(values[name])) for name in operator.inputs if name is not None]
        try:
            run_operator(operator, values)
        except AppError as error:
            raise type(error)(f"{surprise}{error}") from error
        made = [(name, np.asarray(values[name])) for name in operator.outputs]
        surprise = surprise or _surprise(program, operator, made, rows)
        yield Look(operator.definition.label, read, made)


def _surprise(program: Program, operator: Operator, made: list[tuple[str, np.ndarray]], rows: int) -> str:
    """What is wrong with the shapes of results, taking every unknown size for that of the batch; '' if nothing."""
    for name, array in made:
        declared = program.global_block().var(name).shape
        if array.shape != tuple(rows if size == UNKNOWN else size for size in declared):
            return (
                f"{operator.definition.label} made shape {list(array.shape)} of a batch of {rows}, where "
                f"{list(declared)} was foretold; then "
            )
    return ""
