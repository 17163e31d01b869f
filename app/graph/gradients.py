"""Gradients of Programs: the reverse walk over the operators appends the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from app.errors import InPlaceError, OperatorError, ProgramError
from app.graph.autodiff import Recorded, check_dtype_of_gradient, reverse_walk
from app.graph.program import BACKWARD, Block, Operator
from app.graph.variable import Variable
from app.listed import as_list
from app.ops.creation import assign, ones_like, zeros_like
from app.ops.lowering import Constant
from app.ops.size import Shape
from app.ops.spec import UNKNOWN


class BlockCall:
    """A call of an operator in a block, for gradient rules."""

    def __init__(
        self,
        block: Block,
        operator: Operator,
        needs: Sequence[bool],
        value: Callable[[str], Variable] | None = None,
        replaced: Replaced | None = None,
    ):
        self.block = block
        self.operator = operator
        self.value = value or block.var
        """Returns the Variable of a name, by default that of the block."""
        self.definition = operator.definition
        self.attributes = operator.attributes
        self.input_keys = operator.inputs
        self.output_keys = operator.outputs
        self.needs = needs
        self.replaced = replaced or Replaced({}, {})

    def input(self, index: int) -> Variable | None:
        name = self.input_keys[index]
        return None if name is None else self._value_then(name, self.replaced.inputs)

    def like(self, index: int) -> Variable | None:
        name = self.input_keys[index]
        if name is None or UNKNOWN in self.block.var(name).shape:
            return self.input(index)
        return self.value(name)

    def output(self, index: int) -> Variable:
        return self._value_then(self.output_keys[index], self.replaced.outputs)

    def _value_then(self, name: str, replaced: Mapping[str, Operator]) -> Variable:
        """The value of a name at this operator; an error if it was overwritten since."""
        if name not in replaced:
            return self.value(name)
        other = replaced[name]
        raise InPlaceError(
            f"the gradient of {self.definition.label} ({', '.join(self.output_keys)}) needs the value that {name} had "
            f"there, but {other.definition.label}{f' ({other.place})' if other.place else ''} has written another one "
            f"to it since: append the backward pass before that (for two losses, call backward() of both optimizers "
            f"before apply_gradients()), or compute with a copy, opsmith.assign({name})"
        )

    def input_shape(self, index: int) -> Shape:
        name = self.input_keys[index]
        return () if name is None else self.block.var(name).spec.shape

    def output_shape(self, index: int) -> Shape:
        return self.block.var(self.output_keys[index]).spec.shape

    def zeros(self, index: int) -> Variable:
        zeros: Variable = zeros_like(self.output(index))
        return zeros


class Replaced(NamedTuple):
    """The inputs and outputs of an operator that were overwritten later, each with the operator that overwrote it."""

    inputs: Mapping[str, Operator]
    outputs: Mapping[str, Operator]


def _replaced_since(block: Block) -> list[Replaced]:
    """For each operator of a block, which of its values were overwritten later.

    Only persistable variables can be, because every other name has a single value (see `keep_old_value`). In branches
    and loops that are being built, all variables can be.
    """
    later: dict[str, Operator] = {}
    inside = block.program.current_block()
    while inside is not block and inside.is_within(block):
        for op in inside.ops:
            later.update(dict.fromkeys(op.outputs, op))
        inside = block.program.blocks[inside.parent_idx]
    replaced = []
    for op in reversed(block.ops):
        outputs = {name: later[name] for name in op.outputs if name in later}
        later.update(dict.fromkeys(op.outputs, op))
        replaced.append(Replaced({name: later[name] for name in op.inputs if name in later}, outputs))
    return replaced[::-1]


def active_names(
    block: Block, sources: Iterable[str], blocked: Collection[str] = (), operators: Sequence[Operator] | None = None
) -> set[str]:
    """The variables that depend on `sources` through differentiable operators, by default all of the block."""
    active = set(sources).difference(blocked)
    for op in block.ops if operators is None else operators:
        if any(name in active for name in op.inputs):
            outputs = [block.var(name) for name in op.outputs]
            active.update(v.name for v in outputs if not v.stop_gradient and v.name not in blocked)
    return active


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Variable | Sequence[Variable | None] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
) -> list[Variable | None]:
    """Append the backward pass of the sum of `targets`; returns the gradients with respect to `inputs`.

    The gradient of an input that the targets do not depend on is None. `target_gradients` are the gradients of the
    targets, ones by default.
    """
    targets, inputs = as_list(targets), as_list(inputs)
    starts = as_list(target_gradients) if target_gradients is not None else [None] * len(targets)
    if len(starts) != len(targets):
        raise ProgramError(f"{len(targets)} targets, but {len(starts)} gradients for them")
    block = targets[0].block
    blocked = {str(getattr(v, "name", v)) for v in no_grad_set or ()}
    active = active_names(block, [v.name for v in inputs], blocked)
    calls: list[Recorded] = [
        BlockCall(block, op, [name in active for name in op.inputs], replaced=replaced)
        for op, replaced in zip(block.ops, _replaced_since(block), strict=True)
        if any(name in active for name in op.outputs)
    ]
    _check_outside(block, {v.name for v in targets}, inputs, blocked)
    requested = {v.name for v in inputs}
    before = set(block.vars)
    complete_gradients: dict[Hashable, Variable] = {}

    def complete(key: Hashable, gradient: Variable) -> Variable:
        if key in complete_gradients and key in requested:
            raise InPlaceError(
                f"{', '.join(v.name for v in targets)} depends on {key} both as it was before an operator wrote to it "
                "and as it is now, so its gradient is ambiguous; use the gradient of a copy (opsmith.assign) of either"
            )
        variable = block.var(str(key))
        complete_gradients[key] = _rename_gradient(
            gradient, variable.grad_name, key in requested, gradient.name not in before
        )
        variable.gradient = variable.gradient or complete_gradients[key].name
        return complete_gradients[key]

    with block.program.appending(BACKWARD):
        seeds: dict[Hashable, Variable] = {}
        for target, start in zip(targets, starts, strict=True):
            start = ones_like(target) if start is None else block.as_variable(start)
            seeds[target.name] = seeds[target.name] + start if target.name in seeds else start
        _check_path(block, active, {v.name for v in targets}, inputs)
        reverse_walk(reversed(calls), seeds, complete)
        for name, gradient in seeds.items():
            complete(name, gradient)
        for v in inputs:
            if v.name in complete_gradients:
                check_dtype_of_gradient(v.name, v.dtype)
        return [complete_gradients.get(v.name) for v in inputs]


def _check_outside(block: Block, targets: set[str], inputs: Sequence[Variable], blocked: Collection[str]) -> None:
    """Raise an error if targets in a branch or a loop depend on an input through a value that is computed outside of
    it: only the operators inside are differentiated. What a loop carries may depend on all that is outside of it."""
    around = [block]
    while around[0].parent_idx >= 0:
        around.insert(0, block.program.blocks[around[0].parent_idx])
    written: set[str] = set()
    read: set[str] = set()
    for op in block.ops if len(around) > 1 else ():
        read.update(name for name in op.inputs if name is not None and name not in written)
        written.update(op.outputs)
    for variable in inputs:
        depending = {variable.name}
        for outer, inner in pairwise(around):
            depending |= active_names(outer, depending)
            if variable.name not in inner.vars:
                computed = {name for op in inner.ops for name in op.outputs}
                depending.update(n for n, v in inner.vars.items() if n not in computed and not v.stop_gradient)
        for name in sorted(read & depending - {variable.name}):
            if not targets.isdisjoint(active_names(block, [name], blocked)):
                raise OperatorError(
                    f"{', '.join(sorted(targets))} depends on {name}, which may depend on {variable.name} outside of "
                    f"this branch or loop, where nothing is differentiated: compute {name} inside, or detach it"
                )


def _check_path(block: Block, active: set[str], targets: set[str], inputs: Sequence[Variable]) -> None:
    """Raise an error if every path from the inputs to the targets contains an operator without a gradient."""
    if targets & active:
        return
    reached = {v.name for v in inputs}
    for op in block.ops:
        if any(name in reached for name in op.inputs) and not isinstance(op.definition.lowering, Constant):
            reached.update(op.outputs)
    if targets & reached:
        stopping = [
            op.definition.label
            for op in block.ops
            if any(n in active for n in op.inputs) and op.outputs and not op.definition.differentiable
        ]
        raise OperatorError(
            f"no gradient flows from {', '.join(targets)} to {', '.join(v.name for v in inputs)}: "
            f"{' and '.join(dict.fromkeys(stopping)) or 'a variable with stop_gradient'} has none"
        )


def _rename_gradient(gradient: Variable, name: str, requested: bool, is_new: bool) -> Variable:
    """Rename a gradient to the name of its variable with @GRAD.

    If it is already the gradient of another variable, or existed before this backward pass, it keeps its name, or is
    copied if the caller requested it.
    """
    block = gradient.block
    if block.find_var(name) is not None:
        return gradient  # a second backward pass over the same variables, here or around, keeps its own names
    if is_new and not gradient.name.endswith("@GRAD"):
        block.rename_var(gradient.name, name)
        return gradient
    if not requested:
        return gradient
    return block.append_op(assign, [gradient], {}, [block.create_var(name, gradient.shape, gradient.dtype)])[0]


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Variable | str] | None = None,
    no_grad_set: Iterable[Variable | str] | None = None,
) -> list[tuple[Variable, Variable]]:
    """Append the backward pass of a loss; returns each trainable parameter with the variable of its gradient.

    `parameter_list` selects other variables instead. Data with `stop_gradient=False` gets a gradient too, named by its
    `grad_name`.
    """
    if [size for size in loss.shape if size != 1]:
        raise ProgramError(f"the loss must be a single number; {loss.name} has shape {list(loss.shape)}: take its mean")
    listed: list[Variable] = [*loss.program.all_parameters()]
    if parameter_list is not None:
        listed = [loss.block.var(str(getattr(item, "name", item))) for item in parameter_list]
    variables = [v for v in listed if not v.stop_gradient]
    if not variables:
        return []
    names = {v.name for v in variables}
    data = [v for v in loss.block.vars.values() if v.is_data and not v.stop_gradient and v.name not in names]
    results = gradients([loss], [*variables, *data], None, no_grad_set)
    return [(v, g) for v, g in zip(variables, results, strict=False) if g is not None]
