"""Running the operators of a Program one after the other on named values."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from app.errors import AppError, add_note
from app.graph.program import Body, Operator

RunValue: TypeAlias = Any
"""The value of a variable in a run: an array, or None for one that a branch which did not run would compute."""


def run_operator(operator: Operator, values: MutableMapping[str, RunValue]) -> None:
    """Run one operator on named values. A note in its errors names the user's line that made it."""
    inputs = [None if name is None else values[name] for name in operator.inputs]
    try:
        results: RunValue = operator.definition.run(inputs, operator.attributes)
    except AppError as error:
        if operator.place and operator.place not in str(error) and not hasattr(error, "__notes__"):
            add_note(error, f"{operator.definition.label} was made at {operator.place}")
        raise
    if not isinstance(results, tuple):
        results = (results,) if operator.outputs else ()
    for name, result in zip(operator.outputs, results, strict=True):
        # NumPy computes differently with scalars than with arrays without axes, which eager Tensors have
        values[name] = np.asarray(result) if isinstance(result, np.generic) else result


def run_operators(operators: Iterable[Operator], values: MutableMapping[str, RunValue]) -> None:
    """Run operators in order."""
    for operator in operators:
        run_operator(operator, values)


def run_body(body: Body, inputs: Sequence[RunValue]) -> list[RunValue]:
    """Run a body; returns its outputs."""
    values = dict(zip(body.inputs, inputs, strict=True))
    run_operators(body.block.ops, values)
    return [values[name] for name in body.outputs]
