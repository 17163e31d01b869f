"""What one operator does to named values, and what all operators of a body do: the meaning of a Program."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from app.graph.body import Body
from app.graph.program import Operator
from app.ops.definition import kernel_error


def run_operator(operator: Operator, values: MutableMapping[str, Any]) -> None:
    """Run one operator on named values."""
    definition = operator.definition
    inputs = [None if name is None else values[name] for name in operator.inputs]
    try:
        results: Any = definition.kernel(*inputs, **operator.attributes)
    except Exception as error:
        raise kernel_error(definition, inputs, operator.attributes, error) from error
    if not isinstance(results, tuple):
        results = (results,) if operator.outputs else ()
    for name, result in zip(operator.outputs, results, strict=True):
        values[name] = result


def run_body(body: Body, given: Sequence[Any]) -> list[Any]:
    """The values that a body hands out, from those of its inputs; None for one that it does not have."""
    values = dict(zip(body.inputs, given, strict=True))
    for operator in body.block.ops:
        run_operator(operator, values)
    return [None if name is None else values[name] for name in body.outputs]
