"""Updates folded into products: `W - rate * (x.T @ g)` becomes one operator, so the gradient is never stored."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from app.graph.passes.rewrite import reads, with_operators, writes
from app.graph.program import Operator, Program


def steps(program: Program, keep: Collection[str]) -> Program:
    """The Program with each update that subtracts a multiple of a product joined with that product.

    The joined operator is placed where the product was, if nothing in between reads the old value, so that the inputs
    of the product can be freed early; otherwise where the update was.
    """
    operators = program.global_block().ops
    read, written = reads(operators), writes(operators)
    made = {op.outputs[0]: (index, op) for index, op in enumerate(operators) if op.definition.step is not None}
    readings, writings = _places(operators, "inputs"), _places(operators, "outputs")

    def untouched(names: Iterable[str | None], places: dict[str, list[int]], low: int, high: int) -> bool:
        """Whether no operator between two positions is among those listed for these variables."""
        return all(bisect_left(places[n or ""], high) == bisect_right(places[n or ""], low) for n in names)

    result: list[Operator | None] = list(operators)
    for index, op in enumerate(operators):
        term = _term(op)
        if term not in made or read[term] != 1 or written[term] != 1 or term in keep:
            continue
        place, product = made[term]
        joined = _joined(op, product)
        early = untouched([*op.outputs, *joined.inputs[:2]], writings, place, index)
        if early and untouched(op.outputs, readings, place, index):
            result[place], result[index] = joined, None
            _note(joined, place, readings, writings)
        elif untouched(product.inputs, writings, place, index):
            result[place], result[index] = None, joined
            _note(joined, index, readings, writings)
    return with_operators(program, [op for op in result if op is not None], keep)


def _places(operators: Sequence[Operator], side: str) -> dict[str, list[int]]:
    """The positions of the operators that have a variable among their inputs, or outputs, by the variable."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, op in enumerate(operators):
        for name in getattr(op, side):
            places[name or ""].append(index)
    return places


def _note(moved: Operator, place: int, readings: dict[str, list[int]], writings: dict[str, list[int]]) -> None:
    """Note the new position of an operator, for those that are moved after it."""
    for name in moved.inputs:
        insort(readings[name or ""], place)
    for name in moved.outputs:
        insort(writings[name], place)


def _term(update: Operator) -> str:
    """The variable of which an update subtracts a multiple, '' if it has another form."""
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
