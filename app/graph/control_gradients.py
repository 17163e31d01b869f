"""Gradients of control flow: control flow whose bodies compute the gradients of bodies.

A body is a Program, and its gradient reads values that it computes inside. It computes them again: the forward operator
returns nothing for its gradient, and does not change. So the functions of custom operators inside are called again,
and random operators inside must draw the same numbers again.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from app.errors import OperatorError
from app.graph.autodiff import reverse_walk
from app.graph.control import Traced, active_carried, append_cond, append_while, cond, create_formal, traced, while_loop
from app.graph.gradients import BlockCall, active_names
from app.graph.interpret import RunValue, run_body
from app.graph.program import Block, Body, Operator
from app.graph.variable import Variable
from app.ops.arithmetic import add
from app.ops.creation import fill_constant, zeros_like
from app.ops.definition import operator
from app.ops.logic import less_than
from app.ops.lowering import Alias, Constant, Drawing, LoopGradient
from app.ops.spec import UNKNOWN, Spec
from app.ops.update import increment

Gradients = list[Variable | None]


# Bodies in the block that is being built


def inlined(body: Body, inputs: Sequence[Variable]) -> list[Variable]:
    """Append copies of the operators of a body to the current block; returns its outputs for these inputs."""
    program = body.block.program
    block = program.current_block()
    names = dict(zip(body.inputs, (v.name for v in inputs), strict=True))
    for op in body.block.ops:
        copied = op.copied_into(block)
        copied.role = program.role
        copied.inputs = tuple(name and names[name] for name in op.inputs)
        for name in op.outputs:
            old = body.block.var(name)
            new = block.create_var(block.new_name(name), old.shape, old.dtype, stop_gradient=old.stop_gradient)
            names[name] = new.name
        copied.outputs = tuple(names[name] for name in op.outputs)
        block.ops.append(copied)
    return [block.var(names[name]) for name in body.outputs]


class _InnerCall(BlockCall):
    """A call of an operator in a body. Where only a shape is needed and it is known, no value is computed for it."""

    def like(self, index: int) -> Variable | None:
        name = self.input_keys[index]
        return None if name is None else self._in_shape_of(name)

    def zeros(self, index: int) -> Variable:
        zeros: Variable = zeros_like(self._in_shape_of(self.output_keys[index]))
        return zeros

    def _in_shape_of(self, name: str) -> Variable:
        variable = self.block.var(name)
        if UNKNOWN in variable.shape:
            return variable
        attributes = {"shape": variable.shape, "value": 0, "dtype": variable.dtype}
        return self.block.program.current_block().append_op(fill_constant, [], attributes)[0]


def gradients_inside(
    body: Body, inputs: Sequence[Variable], places: Sequence[int], douts: Mapping[int, Variable]
) -> Gradients:
    """Append a body and its reverse walk to the current block; returns the gradients of the inputs at some places.

    `douts` are the gradients of outputs by their positions.
    """
    block = body.block.program.current_block()
    before = len(block.ops)
    outputs = inlined(body, inputs)
    operators = block.ops[before:]
    sources = [inputs[place].name for place in places]
    active = active_names(block, sources, operators=operators)
    gradients: dict[Hashable, Variable] = {}
    for place, dout in douts.items():
        name = outputs[place].name
        gradients[name] = add(gradients[name], dout) if name in gradients else dout
    calls = [
        _InnerCall(block, op, [name in active for name in op.inputs])
        for op in operators
        if not active.isdisjoint(op.outputs)
    ]
    reverse_walk(reversed(calls), gradients)
    return [gradients.get(name) for name in sources]


def _refuse_random(block: Block) -> None:
    """Raise an error if an operator would draw other numbers when it runs again."""
    for op in block.ops:
        lowering = op.definition.lowering
        is_number = isinstance(lowering, Drawing) and lowering.number(op.attributes) is not None
        remedy = ""
        if op.definition.random and op.attributes["seed"] is None and not is_number:
            remedy = "or set random_seed of the Program"
        elif not op.definition.repeatable:
            remedy = "and give them to it as an input"
        if remedy:
            raise OperatorError(
                f"{op.definition.label}{f' ({op.place})' if op.place else ''} draws random numbers in a branch or a "
                "loop, which runs again for the gradient, and would draw different numbers: draw them before it, "
                f"{remedy}"
            )
        for inner in op.bodies.values():
            _refuse_random(inner.block)


def _reach(body: Body, place: int, targets: Collection[str]) -> bool:
    """Whether outputs with these names depend on the input at a position."""
    return not active_names(body.block, [body.inputs[place]]).isdisjoint(targets)


def _read_for(body: Body, outputs: Iterable[str]) -> set[str]:
    """The variables of a body that some outputs depend on."""
    needed = set(outputs)
    for op in reversed(body.block.ops):
        if not needed.isdisjoint(op.outputs):
            needed.update(op.input_arg_names)
    return needed


def _filled(gradients: Gradients, like: Sequence[Variable]) -> list[Variable]:
    """Gradients with zeros in place of absent ones."""
    pairs = zip(gradients, like, strict=True)
    return [zeros_like(variable) if gradient is None else gradient for gradient, variable in pairs]


# Gradient of cond


@cond.gradient
def _(call: BlockCall, douts: Sequence[Variable | None]) -> Gradients:
    op = call.operator
    arrived = {i: dout for i, dout in enumerate(douts) if dout is not None}
    bodies = list(op.bodies.values())
    places = [
        place
        for place, need in enumerate(call.needs[1:])
        if need and any(_reach(body, place, [body.outputs[i] for i in arrived]) for body in bodies)
    ]
    gradients: Gradients = [None] * len(call.needs)
    if not places:
        return gradients
    inputs = [call.block.var(str(name)) for name in op.inputs[1:]]

    def side(body: Body, block: Block) -> list[Variable]:
        return _filled(gradients_inside(body, inputs, places, arrived), [inputs[place] for place in places])

    sides = [traced(call.block.program, partial(side, body)) for body in bodies]
    for one in sides:
        one.prune()
        _check_values(call, one)
    pred = call.input(0)
    assert pred is not None
    for place, gradient in zip(places, append_cond(pred, *sides), strict=True):
        gradients[place + 1] = gradient
    return gradients


def _check_values(call: BlockCall, gradient: Traced) -> None:
    """Raise an error if the gradient cannot compute the values again that it reads."""
    _refuse_random(gradient.block)
    read = gradient.reads_from_outside([v.name for v in gradient.results])
    for place, name in enumerate(call.operator.inputs):
        if name in read:
            call.input(place)


# Gradient of while_loop


def _specs_of_gradient(*values: Spec, body: Body, gradient: Body) -> Sequence[Spec]:
    return values[len(values) - len(gradient.outputs) :]


@operator(_specs_of_gradient, many_outputs=True, optional_gradients=True, lowering=LoopGradient())
def while_loop_gradient(*values: RunValue, body: Body, gradient: Body) -> tuple[RunValue, ...]:
    """The gradients of a loop: it runs again, and then `gradient` runs for each of its iterations, the last one first.

    The values are the number of iterations, the initial values that `body` carries, others that both bodies read, and
    what `gradient` carries: the gradients of the last values, and sums over all iterations. `gradient` reads the values
    with which its iteration begins.
    """
    carried, end = 1 + len(body.outputs), len(values) - len(gradient.outputs)
    state, others, gradients = values[1:carried], values[carried:end], values[end:]
    states = [state] * min(int(values[0]), 1)
    for _ in range(1, int(values[0])):
        states.append(tuple(run_body(body, (*states[-1], *others))))
    for state in reversed(states):
        gradients = tuple(run_body(gradient, (*state, *others, *gradients)))
    return tuple(np.asarray(value) for value in gradients)


@while_loop.gradient
def _gradient_of_loop(call: BlockCall, douts: Sequence[Variable | None]) -> Gradients:
    body = call.operator.bodies["body"]
    active = active_carried(body, call.needs)
    carried = [i for i in range(len(body.outputs)) if body.inputs[i] in active]
    targets = [body.outputs[i] for i in carried]
    shared = [i for i in range(len(body.outputs), len(body.inputs)) if call.needs[i] and _reach(body, i, targets)]
    gradients: Gradients = [None] * len(call.needs)
    if not carried and not shared:
        return gradients
    ends = [call.zeros(i) if (dout := douts[i]) is None else dout for i in carried]
    sums = [zeros_like(call.like(i)) for i in shared]
    outputs = _append_gradient(call, carried, shared, [*ends, *sums])
    for place, gradient in zip((*carried, *shared), outputs, strict=True):
        gradients[place] = gradient if call.needs[place] else None
    return gradients


def _append_gradient(
    call: BlockCall, carried: Sequence[int], shared: Sequence[int], starts: Sequence[Variable]
) -> list[Variable]:
    """Append `while_loop_gradient` for the inputs of a loop at some places; `starts` are the values it begins with."""
    op, body, block, program = call.operator, call.operator.bodies["body"], call.block, call.block.program
    here = program.current_block()
    states = {i: block.new_name(body.inputs[i]) for i in range(len(body.outputs))}
    accumulated = [block.new_name(f"{v.name}.sum") for v in starts]
    outside = [block.var(str(name)) for name in op.inputs[len(states) :]]

    def values(inside: Block) -> list[Variable]:
        inputs_of_body = [body.block.var(body.inputs[i]) for i in states]
        return [
            *(create_formal(inside, states[i], old, old.stop_gradient) for i, old in enumerate(inputs_of_body)),
            *outside,
        ]

    def one_iteration(inside: Block) -> list[Variable]:
        before = [create_formal(inside, name, v, False) for name, v in zip(accumulated, starts, strict=True)]
        upstream, sums = before[: len(carried)], before[len(carried) :]
        gradients = gradients_inside(
            body, values(inside), [*carried, *shared], dict(zip(carried, upstream, strict=True))
        )
        added = [
            total if gradient is None else add(total, gradient)
            for gradient, total in zip(gradients[len(carried) :], sums, strict=True)
        ]
        return [*_filled(gradients[: len(carried)], upstream), *added]

    gradient = traced(program, one_iteration)
    gradient.prune()
    names = [v.name for v in gradient.results]
    read = {name for inner in gradient.block.ops for name in inner.input_arg_names}.union(names)
    needed = [i for i in states if states[i] in read]
    while True:
        read = _read_for(body, [body.outputs[i] for i in needed])
        more = [i for i in states if i in needed or body.inputs[i] in read]
        if more == needed:
            break
        needed = more
    again = traced(program, lambda inside: [inlined(body, values(inside))[i] for i in needed])
    again.prune()
    outputs = [v.name for v in again.results]
    captured = list(dict.fromkeys([*again.reads_from_outside(outputs), *gradient.reads_from_outside(names)]))
    for part in (again, gradient):
        part.declare(captured, here)
        for i in states.keys() - set(needed):
            part.block.vars.pop(states[i], None)
    _check_values(call, again)
    _check_values(call, gradient)
    inputs = [*(states[i] for i in needed), *captured]
    bodies = {
        "body": Body(again.block, inputs, outputs),
        "gradient": Body(gradient.block, [*inputs, *accumulated], names),
    }
    count = call.output(len(body.outputs))
    initial = [call.input(i) for i in needed]
    return here.append_op(
        while_loop_gradient, [count, *initial, *(here.var(name) for name in captured), *starts], bodies
    )


@while_loop_gradient.gradient
def _(call: BlockCall, douts: Sequence[Variable | None]) -> Gradients:
    """The gradient of <douts, gradients of a loop>: that of <starts, derivatives of the loop along douts>.

    The derivatives are computed by a loop that carries them beside the values of the first one. `gradient` is linear in
    what it carries, so its own gradient with respect to that is the derivative of an iteration.
    """
    op, here = call.operator, call.block.program.current_block()
    body, gradient = op.bodies["body"], op.bodies["gradient"]
    states, end = len(body.outputs), len(gradient.inputs) - len(gradient.outputs)
    count, *inputs = [call.block.var(str(name)) for name in op.inputs]
    others, starts = inputs[states:end], inputs[end:]
    zero = here.append_op(fill_constant, [], {"shape": (), "value": 0, "dtype": "int64"})[0]

    def step(index: Variable, *carried: Variable) -> list[Variable]:
        inside = here.program.current_block()
        values, along = [*carried[:states], *others], carried[states:]
        body_gradients = gradients_inside(
            gradient, [*values, *zeros], range(end, len(gradient.inputs)), dict(enumerate(along))
        )
        results = [increment(index), *inlined(body, values), *_filled(body_gradients, along)]
        Traced(inside, results).prune()
        _check_linear(inside, results, zeros)
        return results

    directions, zeros = _filled(list(douts), starts), [zeros_like(start) for start in starts]
    derivatives = append_while([zero, *inputs[:states], *directions], lambda i, *_: less_than(i, count), step)
    loop = here.ops[-1]
    needs_by_name = dict(zip(op.inputs[1 + states : 1 + end], call.needs[1 + states : 1 + end], strict=True))
    needs = [False, *call.needs[1 : 1 + states], *[False] * len(starts)]
    needs += [needs_by_name.get(name, False) for name in loop.inputs[len(needs) :]]
    loop_gradients = _gradient_of_loop(BlockCall(here, loop, needs), [*[None] * (1 + states), *starts, None])
    by_name = dict(
        zip(loop.inputs[1 + states + len(starts) :], loop_gradients[1 + states + len(starts) :], strict=True)
    )
    return [
        None,
        *loop_gradients[1 : 1 + states],
        *(by_name.get(name) for name in op.inputs[1 + states : 1 + end]),
        *derivatives[1 + states :],
    ]


def _check_linear(block: Block, results: Sequence[Variable], incoming: Sequence[Variable]) -> None:
    """Raise an error if derivatives along a gradient depend on its value: it is then not linear in it."""
    if not _dependent(block.ops, {v.name for v in incoming}).isdisjoint(v.name for v in results):
        raise OperatorError(
            "a loop cannot be differentiated twice if a gradient in it is not linear in the incoming gradient"
        )


def _dependent(operators: Sequence[Operator], names: set[str]) -> set[str]:
    """The variables that depend on the values, not only on the shapes, of some variables."""
    dependent = set(names)
    for op in operators:
        lowering, read = op.definition.lowering, op.inputs
        if op.bodies:
            read = op.inputs[: lowering.first]
            for body in op.bodies.values():
                pairs = zip(body.inputs, op.inputs[lowering.first :], strict=False)
                inside = _dependent(body.block.ops, {inner for inner, outer in pairs if outer in dependent})
                read = (*read, *(op.inputs if not inside.isdisjoint(body.outputs) else ()))
        elif isinstance(lowering, (Alias, Constant)):
            read = op.inputs[: isinstance(lowering, Alias)]
        elif getattr(lowering, "takes", None) is not None:
            read = tuple(op.inputs[place] for place in lowering.takes)
        if not dependent.isdisjoint(read):
            dependent.update(op.outputs)
    return dependent
