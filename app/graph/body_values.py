"""What the backward part of control flow can read of the forward part: what that was given, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from app.errors import OperatorError
from app.graph import names
from app.graph.backward import BlockCall
from app.graph.body import Body
from app.graph.program import Block, Operator
from app.graph.variable import Variable
from app.ops.creation import fill_constant, zeros_like
from app.ops.form import Loop
from app.ops.gathering import gather
from app.ops.spec import UNKNOWN


class BodyValues:
    """The values of a forward body, as Variables of the block that is being built."""

    first_input = 0
    """Which input of the operator is the first that the body takes."""

    def __init__(self, call: BlockCall, body_name: str):
        self.call = call
        self.body: Body = call.operator.attributes[body_name]
        self._makers = {name: op for op in self.body.block.ops for name in op.outputs}
        self._known: list[tuple[Any, Block, Any]] = []

    def __call__(self, name: str) -> Variable:
        """The Variable for a name."""
        variable: Variable = self._once(name, lambda: self._find(name))
        return variable

    def run_again(self, op: Operator) -> Operator:
        """A copy of a loop of the body in the block that is being built."""
        copied: Operator = self._once(op, lambda: self._append_again(op))
        return copied

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is made where it is first asked for, and again in a block that cannot see that."""
        here = _building(self.call.block)
        for known, block, made in self._known:
            if known == key and here.is_within(block):
                return made
        self._known.append((key, here, make()))
        return self._known[-1][-1]

    def _find(self, name: str) -> Variable:
        if name in self.body.inputs:
            return self.given(name)
        maker = self._makers.get(name)
        if maker is not None and _is_constant(maker):
            return _building(self.call.block).append_op(maker.definition, [], maker.attributes)[0]
        if maker is not None and _is_history(maker, name):
            return _building(self.call.block).var(self.run_again(maker).outputs[maker.outputs.index(name)])
        return self.kept(name)

    def _append_again(self, op: Operator) -> Operator:
        _refuse_random(op, op)
        block = _building(self.call.block)
        copied = op.copied_into(block)
        copied.inputs = tuple(self(str(name)).name for name in op.inputs)
        made = [self.body.block.var(name) for name in op.outputs]
        copied.outputs = tuple(
            block.create_var(names.generate(v.name), v.shape, v.dtype, stop_gradient=v.stop_gradient).name for v in made
        )
        copied.role = block.program.role
        block.ops.append(copied)
        return copied

    def given(self, name: str) -> Variable:
        """What the body takes under that name."""
        variable = self.call.input(self.first_input + self.body.inputs.index(name))
        assert variable is not None
        return variable

    def kept(self, name: str) -> Variable:
        """A value that the forward operator gives for this purpose, as one more output."""
        op, inner = self.call.operator, self.body.block.var(name)
        for place, output in enumerate(self.body.outputs):
            if output == name and (place >= op.attributes["results"] or self.result_is_value(place)):
                return self.call.value(op.outputs[place])
        shape, flag = self.shape_kept(inner), inner.stop_gradient
        kept = self.call.block.create_var(names.generate(f"{name}.kept"), shape, inner.dtype, stop_gradient=flag)
        op.outputs = (*op.outputs, kept.name)
        self.hand_out(name)
        return self.call.value(kept.name)

    def result_is_value(self, place: int) -> bool:
        """Whether a result of the operator is the value itself, and stays it."""
        return False

    def shape_kept(self, inner: Variable) -> tuple[int, ...]:
        """The shape in which a value is kept."""
        return inner.shape

    def hand_out(self, name: str) -> None:
        """Make the body give one more value."""
        self.body.outputs = (*self.body.outputs, name)


class BranchValues(BodyValues):
    """The values of a branch. The other branch does not have those that are kept."""

    first_input = 1

    def given(self, name: str) -> Variable:
        op = self.call.operator
        changed = op.inputs[1 + self.body.inputs.index(name)] in op.outputs  # so that what it was is known here alone
        return self.kept(name) if changed else super().given(name)

    def result_is_value(self, place: int) -> bool:
        result = self.call.operator.outputs[place]
        return result not in self.call.operator.inputs and not self.call.block.var(result).persistable

    def hand_out(self, name: str) -> None:
        for body in self.call.operator.bodies.values():
            body.outputs = (*body.outputs, name if body is self.body else None)


class IterationValues(BodyValues):
    """The values of one iteration of a loop, of each of which a row was kept at every iteration."""

    def __init__(self, call: BlockCall, index: Variable):
        super().__init__(call, "body")
        self.index = index

    def given(self, name: str) -> Variable:
        carried = self.body.inputs.index(name) < self.call.operator.attributes["results"]
        return self.kept(name) if carried else super().given(name)

    def kept(self, name: str) -> Variable:
        row: Variable = gather(super().kept(name), self.index)
        return row

    def shape_kept(self, inner: Variable) -> tuple[int, ...]:
        return (UNKNOWN, *inner.shape)


class BodyCall(BlockCall):
    """An operator of a body, as gradient rules see it. Where they ask for a shape alone, nothing is kept for it."""

    def __init__(self, block: Block, operator: Operator, needs: Sequence[bool], values: BodyValues):
        super().__init__(block, operator, needs, values)
        self.values = values

    def like(self, index: int) -> Variable | None:
        name = self.input_keys[index]
        return None if name is None else self._in_shape_of(name)

    def zeros(self, index: int) -> Any:
        return zeros_like(self._in_shape_of(self.output_keys[index]))

    def _in_shape_of(self, name: str) -> Variable:
        variable = self.block.var(name)
        if UNKNOWN in variable.shape or variable.dtype == "object":
            return self.value(name)
        attributes = {"shape": variable.shape, "value": 0, "dtype": variable.dtype}
        return _building(self.block).append_op(fill_constant, [], attributes)[0]


def _building(block: Block) -> Block:
    return block.program.current_block()


def _is_constant(op: Operator) -> bool:
    """Whether an operator gives the same at every run, and can as well be there twice."""
    return not op.inputs and len(op.outputs) == 1 and "seed" not in op.attributes and not op.definition.custom


def _is_history(op: Operator, name: str) -> bool:
    """Whether a loop gives a value with a row for each iteration."""
    return isinstance(op.definition.form, Loop) and op.outputs.index(name) >= op.attributes["results"]


def _refuse_random(loop: Operator, op: Operator) -> None:
    for body in op.bodies.values():
        for inner in body.block.ops:
            if "seed" in inner.attributes and inner.attributes["seed"] is None:
                raise OperatorError(
                    f"{inner.definition.label}, which gives {inner.outputs[0]}, draws random numbers in a loop inside "
                    f"a loop or a branch. For its gradient {loop.definition.label} runs again, and would draw others: "
                    "draw them outside, or set random_seed of the Program"
                )
            _refuse_random(loop, inner)
