"""Dead code elimination: removes unused operators, and unused inputs and outputs of control flow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from app.graph.passes.rewrite import is_pure, rewritten, with_operators
from app.graph.program import Body, Operator, Program
from app.ops.lowering import Loop, LoopGradient

T = TypeVar("T")


def dead_code(program: Program, keep: Collection[str]) -> Program:
    """The Program with only the operators that `keep`, persistable variables or side effects depend on."""
    block = program.global_block()
    needed = set(keep)
    operators = []
    for op in reversed(block.ops):
        if not is_pure(block, op) or needed.intersection(op.outputs):
            op = _without_dead_code_inside(program, op, needed) if op.bodies else op
            operators.append(op)
            needed.update(name for name in op.inputs if name is not None)
    return with_operators(program, operators[::-1], keep)


def _without_dead_code_inside(program: Program, op: Operator, needed: Collection[str]) -> Operator:
    persisting = {name for name in op.outputs if program.global_block().var(name).persistable}
    op = _without_unread_outputs(op, persisting.union(needed))
    return _without_unread_inputs(rewritten(op, lambda name, body, outputs: dead_code(body, outputs)))


def _without_unread_outputs(op: Operator, needed: Collection[str]) -> Operator:
    """Control flow with only the needed outputs, and the carried variables that these and the condition depend on."""
    lowering = op.definition.lowering
    if isinstance(lowering, LoopGradient):  # it has none that its gradient did not need
        return op
    needed_places = {i for i, name in enumerate(op.outputs) if name in needed}
    inputs = list(range(len(op.inputs)))
    if isinstance(lowering, Loop):
        count = len(op.outputs) - 1
        needed_places = _carried_for(op, lowering, needed_places - {count})
        inputs = [i for i in inputs if i >= count or i in needed_places]
    places = sorted(needed_places)
    outputs = _at(op.outputs, places) + (op.outputs[-1:] if isinstance(lowering, Loop) else ())
    if len(outputs) == len(op.outputs):
        return op
    changed = Operator(op.definition, _at(op.inputs, inputs), outputs, op.attributes, op.role)
    for name, body in op.bodies.items():
        gives = _at(body.outputs, places) if not isinstance(lowering, Loop) or name == lowering.body else body.outputs
        takes = _at(body.inputs, inputs) if isinstance(lowering, Loop) else body.inputs
        changed.attributes[name] = Body(body.block, takes, gives)
    return changed


def _without_unread_inputs(op: Operator) -> Operator:
    """Control flow with only the inputs that its bodies read; carried variables stay."""
    bodies, lowering = op.bodies, op.definition.lowering
    if isinstance(lowering, LoopGradient):
        return op
    fixed = len(op.outputs) - 1 if isinstance(lowering, Loop) else 0
    first = lowering.first
    read = [{n for inner in b.block.ops for n in inner.inputs} | {*b.outputs} for b in bodies.values()]
    places = range(len(op.inputs) - first)
    read_places = [
        i for i in places if i < fixed or any(b.inputs[i] in r for b, r in zip(bodies.values(), read, strict=True))
    ]
    if len(read_places) == len(places):
        return op
    changed = Operator(op.definition, op.inputs, op.outputs, op.attributes, op.role)
    changed.inputs = (*op.inputs[:first], *_at(op.inputs[first:], read_places))
    for name, body in bodies.items():
        removed = {*body.inputs} - {*_at(body.inputs, read_places)}
        changed.attributes[name] = Body(body.block, _at(body.inputs, read_places), body.outputs)
        for unread in removed:
            body.block.vars.pop(unread, None)
    return changed


def _at(items: Sequence[T], places: Iterable[int]) -> tuple[T, ...]:
    return tuple(items[i] for i in places)


def _carried_for(op: Operator, lowering: Loop, places: set[int]) -> set[int]:
    """The wanted outputs of a loop, and the carried variables that these depend on in other iterations."""
    condition, body = op.attributes[lowering.condition], op.attributes[lowering.body]
    while True:
        read = _sources(condition, condition.outputs) | _sources(body, [body.outputs[i] for i in places])
        carried = {i for i in range(len(body.outputs)) if condition.inputs[i] in read or body.inputs[i] in read}
        if carried <= places:
            return places
        places = places | carried


def _sources(body: Body, names: Iterable[str]) -> set[str]:
    """The variables that the given variables of a body, and side effects in it, depend on."""
    needed = set(names)
    for op in reversed(body.block.ops):
        if needed.intersection(op.outputs) or not is_pure(body.block, op):
            needed.update(name for name in op.inputs if name is not None)
    return needed
