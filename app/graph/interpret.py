"""Running the operators of a Program one after the other on named values."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any

from app.graph.program import Body, Operator


def run_operator(operator: Operator, values: MutableMapping[str, Any]) -> None:
    """Run one operator on named values."""
    inputs = [None if name is None else values[name] for name in operator.inputs]
    results: Any = operator.definition.run(inputs, operator.attributes)
    if not isinstance(results, tuple):
        results = (results,) if operator.outputs else ()
    for name, result in zip(operator.outputs, results, strict=True):
        values[name] = result


def run_operators(operators: Iterable[Operator], values: MutableMapping[str, Any]) -> None:
    """Run operators in order."""
    for operator in operators:
        run_operator(operator, values)


def run_body(body: Body, inputs: Sequence[Any]) -> list[Any]:
    """Run a body; returns its outputs, None for one that it does not have."""
    values = dict(zip(body.inputs, inputs, strict=True))
    run_operators(body.block.ops, values)
    return [None if name is None else values[name] for name in body.outputs]
