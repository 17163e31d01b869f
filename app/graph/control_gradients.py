"""Gradients of control flow, which are control flow too; their bodies are built by the reverse walk.

A gradient reads values of the forward bodies. The forward operator returns these as further outputs, so nothing is
computed twice, random numbers are drawn once, and users' Python functions are called once. The exception is a loop
inside a body: it runs again, because the size of its stacked outputs is not known in advance.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import partial
from typing import TypeVar

from app.errors import OperatorError
from app.graph.autodiff import reverse_walk
from app.graph.control import active_carried, append_cond, append_while, cond, traced, while_loop
from app.graph.gradients import BlockCall, active_names
from app.graph.program import Block, Body, Operator
from app.graph.variable import Variable
from app.ops.arithmetic import add
from app.ops.creation import fill_constant, zeros_like
from app.ops.gathering import gather
from app.ops.logic import greater_equal
from app.ops.lowering import Loop
from app.ops.spec import UNKNOWN
from app.ops.update import increment

Gradients = list[Variable | None]
T = TypeVar("T")


# Values of the forward bodies


class ForwardValues:
    """The values of a forward body, as Variables of the block that is being built.

    Reading a value that the forward operator does not return yet creates a Variable for it. After the gradient has been
    built, `return_read_values` adds these values to the outputs of the forward operator.
    """

    first_input = 0
    """The position of the body's first input among those of the operator."""

    def __init__(self, call: BlockCall, body_name: str):
        self.call = call
        self.body: Body = call.operator.attributes[body_name]
        self._makers = {name: op for op in self.body.block.ops for name in op.outputs}
        self._built: list[tuple[str, Block, Variable]] = []
        self._loops: list[tuple[Operator, Block, Operator]] = []
        self._returned = {
            str(name): call.operator.outputs[place]
            for place, name in reversed(list(enumerate(self.body.outputs)))
            if name is not None and (place >= call.operator.attributes["results"] or self.result_is_value(place))
        }
        """The outputs of the operator, by the names of the values in the body."""
        self._read: dict[str, str] = {}
        """The outputs to be added to the operator, by the names of the values in the body."""

    def __call__(self, name: str) -> Variable:
        """The Variable for a name; built once, and again in blocks from which the first one is not visible."""
        here = _current_block(self.call.block)
        for known, block, variable in self._built:
            if known == name and here.is_within(block):
                return variable
        self._built.append((name, here, self._build(name)))
        return self._built[-1][-1]

    def _build(self, name: str) -> Variable:
        if name in self.body.inputs:
            return self.input(name)
        maker = self._makers.get(name)
        if maker is not None and _is_constant(maker):
            return _current_block(self.call.block).append_op(maker.definition, [], maker.attributes)[0]
        if maker is not None and _is_stack(maker, name):
            return _current_block(self.call.block).var(self.repeated(maker).outputs[maker.outputs.index(name)])
        return self.returned(name)

    def repeated(self, loop: Operator) -> Operator:
        """A copy of a loop of the body in the block that is being built."""
        here = _current_block(self.call.block)
        for known, block, copied in self._loops:
            if known is loop and here.is_within(block):
                return copied
        copied = self._append_copy(loop)
        self._loops.append((loop, here, copied))
        return copied

    def _append_copy(self, loop: Operator) -> Operator:
        _refuse_random(loop, loop)
        block = _current_block(self.call.block)
        copied = loop.copied_into(block)
        copied.inputs = tuple(self(str(name)).name for name in loop.inputs)
        made = [self.body.block.var(name) for name in loop.outputs]
        copied.outputs = tuple(
            block.create_var(block.new_name(v.name), v.shape, v.dtype, stop_gradient=v.stop_gradient).name for v in made
        )
        copied.role = block.program.role
        block.ops.append(copied)
        return copied

    def input(self, name: str) -> Variable:
        """The value of an input of the body."""
        variable = self.call.input(self.first_input + self.body.inputs.index(name))
        assert variable is not None
        return variable

    def returned(self, name: str) -> Variable:
        """A value that the forward operator returns, or will return."""
        if name not in self._returned:
            inner = self.body.block.var(name)
            output = self.call.block.create_var(
                self.call.block.new_name(f"{name}.kept"),
                self.shape_returned(inner),
                inner.dtype,
                stop_gradient=inner.stop_gradient,
            )
            self._returned[name] = self._read[name] = output.name
        return self.call.value(self._returned[name])

    def return_read_values(self) -> None:
        """Add the values that were read to the outputs of the forward operator."""
        op = self.call.operator
        op.outputs = (*op.outputs, *self._read.values())
        self.add_outputs(tuple(self._read))
        self._read = {}

    def result_is_value(self, place: int) -> bool:
        """Whether a result of the operator is the value in the body itself, and is never overwritten."""
        return False

    def shape_returned(self, inner: Variable) -> tuple[int, ...]:
        """The shape in which the operator returns a value."""
        return inner.shape

    def add_outputs(self, added: tuple[str, ...]) -> None:
        """Add outputs to the body."""
        self.body.outputs = (*self.body.outputs, *added)


class BranchValues(ForwardValues):
    """The values of a branch. The other branch returns None for added outputs."""

    first_input = 1

    def input(self, name: str) -> Variable:
        op = self.call.operator
        changed = (
            op.inputs[1 + self.body.inputs.index(name)] in op.outputs
        )  # the old value is known only inside the branch
        return self.returned(name) if changed else super().input(name)

    def result_is_value(self, place: int) -> bool:
        result = self.call.operator.outputs[place]
        return result not in self.call.operator.inputs and not self.call.block.var(result).persistable

    def add_outputs(self, added: tuple[str, ...]) -> None:
        for body in self.call.operator.bodies.values():
            body.outputs = (*body.outputs, *(added if body is self.body else [None] * len(added)))


class IterationValues(ForwardValues):
    """The values of one iteration of a loop, which returns them stacked, one row for each iteration."""

    def __init__(self, call: BlockCall, index: Variable):
        super().__init__(call, "body")
        self.index = index

    def input(self, name: str) -> Variable:
        carried = self.body.inputs.index(name) < self.call.operator.attributes["results"]
        return self.returned(name) if carried else super().input(name)

    def returned(self, name: str) -> Variable:
        row: Variable = gather(super().returned(name), self.index)
        return row

    def shape_returned(self, inner: Variable) -> tuple[int, ...]:
        return (UNKNOWN, *inner.shape)


class BodyCall(BlockCall):
    """A call of an operator in a forward body, for gradient rules. If only a shape is needed, no value is read."""

    def __init__(self, block: Block, operator: Operator, needs: Sequence[bool], values: ForwardValues):
        super().__init__(block, operator, needs, values)
        self.values = values

    def like(self, index: int) -> Variable | None:
        name = self.input_keys[index]
        return None if name is None else self._in_shape_of(name)

    def zeros(self, index: int) -> Variable:
        zeros: Variable = zeros_like(self._in_shape_of(self.output_keys[index]))
        return zeros

    def _in_shape_of(self, name: str) -> Variable:
        variable = self.block.var(name)
        if UNKNOWN in variable.shape or variable.dtype == "object":
            return self.value(name)
        attributes = {"shape": variable.shape, "value": 0, "dtype": variable.dtype}
        return _current_block(self.block).append_op(fill_constant, [], attributes)[0]


def _current_block(block: Block) -> Block:
    return block.program.current_block()


def _is_constant(op: Operator) -> bool:
    """Whether an operator returns the same value in every run, so that it can be duplicated."""
    return not op.inputs and len(op.outputs) == 1 and not (op.definition.random or op.definition.custom)


def _is_stack(op: Operator, name: str) -> bool:
    """Whether an output of a loop has a row for each iteration."""
    return isinstance(op.definition.lowering, Loop) and op.outputs.index(name) >= op.attributes["results"]


def _refuse_random(loop: Operator, op: Operator) -> None:
    for body in op.bodies.values():
        for inner in body.block.ops:
            if inner.definition.random and inner.attributes["seed"] is None:
                raise OperatorError(
                    f"{inner.definition.label}, which computes {inner.outputs[0]}, draws random numbers in a loop "
                    f"inside a loop or a branch. For its gradient {loop.definition.label} runs again, and would draw "
                    "different numbers: draw them outside, or set random_seed of the Program"
                )
            _refuse_random(loop, inner)


# The reverse walk over a body


def _gradients_of_body(
    body: Body, seeds: dict[Hashable, Variable], sources: Collection[str], values: ForwardValues
) -> dict[Hashable, Variable]:
    """The gradients of the inputs of a body by name, from those of values in it."""
    block, active = body.block, active_names(body.block, sources)
    calls = [
        BodyCall(block, op, [name in active for name in op.inputs], values)
        for op in block.ops
        if not active.isdisjoint(op.outputs)
    ]
    reverse_walk(reversed(calls), seeds)
    values.return_read_values()
    return seeds


def _add_gradient(seeds: dict[Hashable, Variable], name: str | None, gradient: Variable | None) -> None:
    if name is not None and gradient is not None:
        seeds[name] = add(seeds[name], gradient) if name in seeds else gradient


def _reaches(body: Body, name: str, targets: Collection[str | None]) -> bool:
    return not active_names(body.block, [name]).isdisjoint(filter(None, targets))


# Gradient of cond


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
        seeds: dict[Hashable, Variable] = {}
        for i in arrived:
            _add_gradient(seeds, body.outputs[i], douts[i])
        sources = [body.inputs[place] for place in wanted]
        found = _gradients_of_body(body, seeds, sources, BranchValues(call, name))
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


# Gradient of while_loop


def _gradient_of_loop(call: BlockCall, douts: Sequence[Variable | None]) -> Gradients:
    if isinstance(call, BodyCall):
        call = BlockCall(call.block.program.current_block(), call.values.repeated(call.operator), call.needs)
    places = [i for i, need in enumerate(call.needs) if need]
    counted = _count_iterations(call, douts)
    backward = _BackwardLoop(*counted)
    found = backward.gradients()
    shift = len(counted[0].needs) - len(call.needs)  # a counter is added after the other results
    first = counted[0].operator.attributes["results"] - shift
    gradients: Gradients = [None] * len(call.needs)
    for place in places:
        gradients[place] = found.get(place if place < first else place + shift)
    return gradients


class _BackwardLoop:
    """The backward loop: it runs the iterations of a forward loop in reverse, from the gradients of its outputs."""

    def __init__(self, call: BlockCall, douts: Sequence[Variable | None]):
        self.call = call
        self.douts = douts
        self.body: Body = call.operator.attributes["body"]
        self.results: int = call.operator.attributes["results"]
        active = active_carried(self.body, call.needs, self.results)
        self.carried = [i for i in range(self.results) if self.body.inputs[i] in active]
        self.stacked = [i for i in range(self.results, len(douts)) if douts[i] is not None]
        """The stacked outputs that have a gradient themselves, as in second derivatives."""
        targets = [self.body.outputs[i] for i in (*self.carried, *self.stacked)]
        self.shared = [
            i
            for i in range(self.results, len(self.body.inputs))
            if call.needs[i] and _reaches(self.body, self.body.inputs[i], targets)
        ]
        """Inputs that all iterations read; their gradients are sums over the iterations."""

    def gradients(self) -> dict[int, Variable]:
        """The gradients of the forward loop's inputs, by their positions."""
        if not self.carried and not self.shared:
            return {}
        call = self.call
        count = call.output(call.operator.attributes["counter"])
        ends = [call.zeros(i) if (dout := self.douts[i]) is None else dout for i in self.carried]
        sums = [zeros_like(call.like(i)) for i in self.shared]
        initial: list[Variable] = [increment(count, value=-1), *ends, *sums]
        _, *found = append_while(initial, _is_left, self._one_iteration)
        return dict(zip((*self.carried, *self.shared), found, strict=True))

    def _one_iteration(self, index: Variable, *values: Variable) -> list[Variable]:
        body = self.body
        upstream, sums = values[: len(self.carried)], values[len(self.carried) :]
        seeds: dict[Hashable, Variable] = {}
        for i, gradient in zip(self.carried, upstream, strict=True):
            _add_gradient(seeds, body.outputs[i], gradient)
        for i in self.stacked:
            _add_gradient(seeds, body.outputs[i], gather(self.douts[i], index))
        sources = [body.inputs[i] for i in (*self.carried, *self.shared)]
        found = _gradients_of_body(body, seeds, sources, IterationValues(self.call, index))
        before = [
            found[body.inputs[i]] if body.inputs[i] in found else zeros_like(gradient)
            for i, gradient in zip(self.carried, upstream, strict=True)
        ]
        added = [
            add(total, found[body.inputs[i]]) if body.inputs[i] in found else total
            for i, total in zip(self.shared, sums, strict=True)
        ]
        return [increment(index, value=-1), *before, *added]


def _is_left(index: Variable, *others: Variable) -> Variable:
    left: Variable = greater_equal(index, 0)
    return left


def _count_iterations(call: BlockCall, douts: Sequence[Variable | None]) -> tuple[BlockCall, Sequence[Variable | None]]:
    """Add a result that counts the iterations of a loop; returns its new call, and the gradients of its new outputs."""
    op, block = call.operator, call.block
    if op.attributes["counter"] >= 0:
        return call, douts
    place = op.attributes["results"]
    zero, total = (block.create_var(block.new_name("count"), (), "int64", stop_gradient=True) for _ in range(2))
    start = Operator(fill_constant, [], [zero.name], {"shape": (), "value": 0, "dtype": "int64"}, op.role)
    block.ops.insert(next(i for i, other in enumerate(block.ops) if other is op), start)
    for body in op.bodies.values():
        inside = body.block.create_var(body.block.new_name("count"), (), "int64", stop_gradient=True)
        body.inputs = _inserted(body.inputs, place, inside.name)
    body = op.attributes["body"]
    more = body.block.create_var(body.block.new_name("count"), (), "int64", stop_gradient=True)
    body.block.ops.append(Operator(increment, [body.inputs[place]], [more.name], {"value": 1}, op.role))
    body.outputs = _inserted(body.outputs, place, more.name)
    op.inputs, op.outputs = _inserted(op.inputs, place, zero.name), _inserted(op.outputs, place, total.name)
    op.attributes.update(results=place + 1, counter=place)
    needs = _inserted(tuple(call.needs), place, False)
    return BlockCall(block, op, needs, call.value, call.replaced), _inserted(tuple(douts), place, None)


def _inserted(items: tuple[T, ...], position: int, item: T) -> tuple[T, ...]:
    return (*items[:position], item, *items[position:])


cond.gradient(_gradient_of_cond)
while_loop.gradient(_gradient_of_loop)
