"""Fusion of updates with products: `W - rate * (x.T @ g)` becomes one operator, so the gradient is never stored."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from app.graph.passes.rewrite import reads, with_operators, writes
from app.graph.program import Operator, Program


def steps(program: Program, keep: Collection[str]) -> Program:
    """The Program with each update that subtracts a multiple of a product fused with that product.

    The fused operator is placed at the position of the product, so that the inputs of the product can be freed early;
    or at that of the update, if an operator in between reads the old value.
    """
    operators = program.global_block().ops
    read_counts, write_counts = reads(operators), writes(operators)
    products = {op.outputs[0]: (index, op) for index, op in enumerate(operators) if op.definition.step is not None}
    readings, writings = _positions(operators, "inputs"), _positions(operators, "outputs")

    def untouched(names: Iterable[str | None], places: dict[str, list[int]], low: int, high: int) -> bool:
        """Whether `places` has no position between `low` and `high` for any of these variables."""
        return all(bisect_left(places[n or ""], high) == bisect_right(places[n or ""], low) for n in names)

    result: list[Operator | None] = list(operators)
    for index, op in enumerate(operators):
        term = _term(op)
        if term not in products or read_counts[term] != 1 or write_counts[term] != 1 or term in keep:
            continue
        place, product = products[term]
        joined = _joined(op, product)
        early = untouched([*op.outputs, *joined.inputs[:2]], writings, place, index)
        if early and untouched(op.outputs, readings, place, index):
            result[place], result[index] = joined, None
            _record_position(joined, place, readings, writings)
        elif untouched(product.inputs, writings, place, index):
            result[place], result[index] = None, joined
            _record_position(joined, index, readings, writings)
    return with_operators(program, [op for op in result if op is not None], keep)


def _positions(operators: Sequence[Operator], side: str) -> dict[str, list[int]]:
    """For each variable, the positions of the operators that have it among their inputs or outputs."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, op in enumerate(operators):
        for name in getattr(op, side):
            places[name or ""].append(index)
    return places


def _record_position(
    moved: Operator, place: int, readings: dict[str, list[int]], writings: dict[str, list[int]]
) -> None:
    """Record the new position of an operator, for operators that are moved later."""
    for name in moved.inputs:
        insort(readings[name or ""], place)
    for name in moved.outputs:
        insort(writings[name], place)


def _term(update: Operator) -> str:
    """The variable of which an update subtracts a multiple; '' for other operators."""
    form = update.definition.accumulates
    if form is None or len(update.outputs) != 1:
        return ""
    return update.inputs[update.definition.inputs.index(form.term)] or ""


def _joined(update: Operator, product: Operator) -> Operator:
    form, definition = update.definition.accumulates, product.definition.step
    assert form is not None
    assert definition is not None
    base, scale = (update.inputs[update.definition.inputs.index(n)] for n in (form.base, form.scale))
    return Operator(definition, [base, scale, *product.inputs], update.outputs, product.attributes, update.role)
