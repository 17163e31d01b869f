"""Updates folded into products: `W - rate * (x.T @ g)` becomes one operator, and the gradient is never stored."""

from __future__ import annotations

from collections.abc import Collection

from app.graph.passes.rewrite import reads, with_operators, writes
from app.graph.program import Operator, Program


def steps(program: Program, keep: Collection[str]) -> Program:
    """The Program with each update that subtracts a multiple of a product joined with that product."""
    operators = list(program.global_block().ops)
    read, written = reads(operators), writes(operators)
    made = {op.outputs[0]: op for op in operators if op.definition.step is not None}
    gone = set()
    result = []
    for op in operators:
        product = _product(op, made)
        if product is not None:
            term = product.outputs[0]
            unchanged = all(
                written[n or ""] == 0 or _last_write(operators, n) < operators.index(product) for n in product.inputs
            )
            if read[term] == 1 and written[term] == 1 and term not in keep and unchanged:
                gone.add(id(product))
                op = _joined(op, product)
        result.append(op)
    return with_operators(program, [op for op in result if id(op) not in gone], keep)


def _product(update: Operator, made: dict[str, Operator]) -> Operator | None:
    """The product whose result an update of the right form subtracts."""
    form = update.definition.accumulates
    if form is None:
        return None
    product = made.get(update.inputs[update.definition.inputs.index(form.term)] or "")
    return product if product is not None and len(update.outputs) == 1 else None


def _last_write(operators: list[Operator], name: str | None) -> int:
    return max((i for i, op in enumerate(operators) if name in op.outputs), default=-1)


def _joined(update: Operator, product: Operator) -> Operator:
    form, definition = update.definition.accumulates, product.definition.step
    assert definition is not None
    base, scale = (update.inputs[update.definition.inputs.index(n)] for n in (form.base, form.scale))
    return Operator(definition, [base, scale, *product.inputs], update.outputs, product.attributes, update.role)
