"""Gradients of control flow: again control flow, whose bodies the one reverse walk makes.

What the backward part reads of the forward part is kept by the forward operator, as further outputs: nothing is
computed twice, and what draws random numbers or is a user's Python has run once. A loop inside a body is the
exception: it is run again, as what it keeps of each iteration has no size under which it could be handed out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from app.graph import names
from app.graph.autodiff import reverse_walk
from app.graph.body import Body
from app.graph.body_values import BodyCall, BodyValues, BranchValues, IterationValues
from app.graph.control import cond, while_loop
from app.graph.control_building import active_carried, append_cond, append_while, traced
from app.graph.gradients import BlockCall, active_names
from app.graph.program import Block, Operator
from app.graph.variable import Variable
from app.ops.arithmetic import add
from app.ops.creation import fill_constant, zeros_like
from app.ops.gathering import gather
from app.ops.logic import greater_equal
from app.ops.update import increment

Gradients = list[Variable | None]


def _walked(body: Body, seeds: dict[Any, Any], sources: Collection[str], values: BodyValues) -> dict[Any, Any]:
    """The gradients of what a body takes, by name, from those of values in it."""
    block, active = body.block, active_names(body.block, sources)
    calls = [
        BodyCall(block, op, [name in active for name in op.inputs], values)
        for op in block.ops
        if not active.isdisjoint(op.outputs)
    ]
    reverse_walk(reversed(calls), seeds)
    return seeds


def _plus(seeds: dict[Any, Any], name: str | None, gradient: Variable | None) -> None:
    if name is not None and gradient is not None:
        seeds[name] = add(seeds[name], gradient) if name in seeds else gradient


def _reaches(body: Body, name: str, targets: Collection[str | None]) -> bool:
    return not active_names(body.block, [name]).isdisjoint(filter(None, targets))


# A choice


def _gradient_of_cond(call: BlockCall, douts: Sequence[Variable | None]) -> Gradients:
    op = call.operator
    arrived = [i for i, dout in enumerate(douts) if dout is not None]
    bodies = op.bodies
    wanted = [
        place
        for place in range(len(op.inputs) - 1)
        if call.needs[place + 1]
        and any(_reaches(b, b.inputs[place], [b.outputs[i] for i in arrived]) for b in bodies.values())
    ]
    gradients: Gradients = [None] * len(call.needs)
    if not wanted:
        return gradients

    def side(name: str, block: Block) -> list[Variable]:
        body = bodies[name]
        seeds: dict[Any, Any] = {}
        for i in arrived:
            _plus(seeds, body.outputs[i], douts[i])
        sources = [body.inputs[place] for place in wanted]
        found = _walked(body, seeds, sources, BranchValues(call, name))
        return [
            found[name] if name in found else zeros_like(call.like(place + 1))
            for place, name in zip(wanted, sources, strict=True)
        ]

    pred = call.input(0)
    assert pred is not None
    true, false = (traced(pred.program, partial(side, name)) for name in bodies)
    for place, gradient in zip(wanted, append_cond(pred, true, false), strict=True):
        gradients[place + 1] = gradient
    return gradients


# A loop


def _gradient_of_loop(call: BlockCall, douts: Sequence[Variable | None]) -> Gradients:
    if isinstance(call, BodyCall):
        call = BlockCall(call.block.program.current_block(), call.values.run_again(call.operator), call.needs)
    places = [i for i, need in enumerate(call.needs) if need]
    counted = _counting_iterations(call, douts)
    backward = _BackwardLoop(*counted)
    found = backward.gradients()
    shift = len(counted[0].needs) - len(call.needs)  # a counter stands after the other results
    first = counted[0].operator.attributes["results"] - shift
    gradients: Gradients = [None] * len(call.needs)
    for place in places:
        gradients[place] = found.get(place if place < first else place + shift)
    return gradients


class _BackwardLoop:
    """The loop that walks the iterations of another one in reverse, from the gradients of what that one gave."""

    def __init__(self, call: BlockCall, douts: Sequence[Variable | None]):
        self.call = call
        self.douts = douts
        self.body: Body = call.operator.attributes["body"]
        self.results: int = call.operator.attributes["results"]
        active = active_carried(self.body, call.needs, self.results)
        self.carried = [i for i in range(self.results) if self.body.inputs[i] in active]
        self.kept = [i for i in range(self.results, len(douts)) if douts[i] is not None]
        """What was kept of each iteration and has a gradient itself, in second derivatives."""
        targets = [self.body.outputs[i] for i in (*self.carried, *self.kept)]
        self.shared = [
            i
            for i in range(self.results, len(self.body.inputs))
            if call.needs[i] and _reaches(self.body, self.body.inputs[i], targets)
        ]
        """Inputs that all iterations read: their gradient is a sum."""

    def gradients(self) -> dict[int, Variable]:
        """The gradients of the forward loop's inputs, by their places."""
        if not self.carried and not self.shared:
            return {}
        call = self.call
        count = call.output(call.operator.attributes["counter"])
        ends = [self.douts[i] if self.douts[i] is not None else call.zeros(i) for i in self.carried]
        sums = [zeros_like(call.like(i)) for i in self.shared]
        initial: list[Any] = [increment(count, value=-1), *ends, *sums]
        _, *found = append_while(initial, _is_left, self._one_iteration)
        return dict(zip((*self.carried, *self.shared), found, strict=True))

    def _one_iteration(self, index: Variable, *values: Variable) -> list[Variable]:
        body = self.body
        arriving, sums = values[: len(self.carried)], values[len(self.carried) :]
        seeds: dict[Any, Any] = {}
        for i, gradient in zip(self.carried, arriving, strict=True):
            _plus(seeds, body.outputs[i], gradient)
        for i in self.kept:
            _plus(seeds, body.outputs[i], gather(self.douts[i], index))
        sources = [body.inputs[i] for i in (*self.carried, *self.shared)]
        found = _walked(body, seeds, sources, IterationValues(self.call, index))
        before = [
            found[body.inputs[i]] if body.inputs[i] in found else zeros_like(gradient)
            for i, gradient in zip(self.carried, arriving, strict=True)
        ]
        added = [
            add(total, found[body.inputs[i]]) if body.inputs[i] in found else total
            for i, total in zip(self.shared, sums, strict=True)
        ]
        return [increment(index, value=-1), *before, *added]


def _is_left(index: Variable, *others: Variable) -> Variable:
    left: Variable = greater_equal(index, 0)
    return left


def _counting_iterations(
    call: BlockCall, douts: Sequence[Variable | None]
) -> tuple[BlockCall, Sequence[Variable | None]]:
    """The call of a loop that counts its iterations, in a further result; gradients of the outputs to match."""
    op, block = call.operator, call.block
    if op.attributes["counter"] >= 0:
        return call, douts
    place = op.attributes["results"]
    zero, total = (block.create_var(names.generate("count"), (), "int64", stop_gradient=True) for _ in range(2))
    start = Operator(fill_constant, [], [zero.name], {"shape": (), "value": 0, "dtype": "int64"}, op.role)
    block.ops.insert(next(i for i, other in enumerate(block.ops) if other is op), start)
    for body in op.bodies.values():
        inside = body.block.create_var(names.generate("count"), (), "int64", stop_gradient=True)
        body.inputs = _with(body.inputs, place, inside.name)
    body = op.attributes["body"]
    more = body.block.create_var(names.generate("count"), (), "int64", stop_gradient=True)
    body.block.ops.append(Operator(increment, [body.inputs[place]], [more.name], {"value": 1}, op.role))
    body.outputs = _with(body.outputs, place, more.name)
    op.inputs, op.outputs = _with(op.inputs, place, zero.name), _with(op.outputs, place, total.name)
    op.attributes.update(results=place + 1, counter=place)
    needs = _with(tuple(call.needs), place, False)
    return BlockCall(block, op, needs, call.value, call.replaced), _with(tuple(douts), place, None)


def _with(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place:])


cond.gradient(_gradient_of_cond, ["call", "douts"])
while_loop.gradient(_gradient_of_loop, ["call", "douts"])
