"""A Program as plain data: Blocks of Operators that work on named Variables. It executes nothing."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import numpy as np

from app.errors import ProgramError, ShapeError
from app.graph import names
from app.graph.build import (
    as_variable,
    check_readable,
    keep_old_value,
    prepare_write,
    replace_name,
    tell_watchers,
    user_location,
)
from app.graph.scope import Scope, global_scope
from app.graph.show import format_block
from app.graph.variable import Parameter, Variable
from app.ops.definition import OpDef
from app.ops.dtype import is_float
from app.ops.settings import is_usual, same_settings, shown
from app.ops.size import AnySize

FORWARD, BACKWARD, OPTIMIZE = "forward", "backward", "optimize"


class Body:
    """A sub-block as the attribute of an operator. It reads only its inputs, each under a name of its own."""

    def __init__(self, block: Block, inputs: Sequence[str], outputs: Sequence[str | None]):
        self.block = block
        self.inputs = tuple(inputs)
        """The variables of the block that stand for the values given, in order."""
        self.outputs = tuple(outputs)
        """The variables that are returned, in order; None stands for one that another body of the operator has."""

    def output(self, index: int) -> Variable | None:
        """The variable that is returned at that position."""
        name = self.outputs[index]
        return None if name is None else self.block.var(name)

    def __repr__(self) -> str:
        return f"block {self.block.idx}"

    def equals(self, other: Body) -> bool:
        """Whether the other does the same; which numbers the blocks have does not matter."""
        return (self.inputs, self.outputs) == (other.inputs, other.outputs) and self.block.equals(other.block)


class Operator:
    """One line of a Block: a definition applied to variables by name. An absent optional input is None."""

    __slots__ = ("attributes", "definition", "inputs", "outputs", "place", "role")

    def __init__(
        self,
        definition: OpDef,
        inputs: Sequence[str | None],
        outputs: Sequence[str],
        attributes: Mapping[str, Any],
        role: str = FORWARD,
        place: str = "",
    ):
        self.definition = definition
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.attributes = dict(attributes)
        self.role = role
        self.place = place
        """The user's file and line, where the operator writes to a variable that it was given."""

    @property
    def type(self) -> str:
        return self.definition.name

    @property
    def input_arg_names(self) -> list[str]:
        return [name for name in self.inputs if name is not None]

    @property
    def output_arg_names(self) -> list[str]:
        return list(self.outputs)

    @property
    def attr_names(self) -> list[str]:
        return list(self.attributes)

    def attr(self, name: str) -> Any:
        """The attribute of that name."""
        return self.attributes[name]

    @property
    def bodies(self) -> dict[str, Body]:
        """The bodies that run inside the operator, by the names of the attributes; most operators have none."""
        return {name: value for name, value in self.attributes.items() if isinstance(value, Body)}

    def copied_into(self, block: Block, for_test: bool = False) -> Operator:
        """A copy for another block; what runs inside is copied into that block's Program, too."""
        copied = Operator(self.definition, self.inputs, self.outputs, self.attributes, self.role, self.place)
        for name, body in self.bodies.items():
            inside = body.block.copied_into(block.program, block.idx, for_test)
            copied.attributes[name] = Body(inside, body.inputs, body.outputs)
        if for_test and self.definition.has_training_mode:
            copied.attributes["training"] = False
        return copied

    def __str__(self) -> str:
        usual = self.definition.attributes
        words = [name or "None" for name in self.inputs]
        words += [f"{k}={shown(v)}" for k, v in self.attributes.items() if not is_usual(v, usual.get(k))]
        call = f"{self.type}({', '.join(words)})"
        return f"{', '.join(self.outputs)} = {call}" if self.outputs else call

    __repr__ = __str__

    def equals(self, other: Operator) -> bool:
        """Whether the other does the same with variables of the same names."""
        mine, theirs = ((op.definition, op.inputs, op.outputs, op.role) for op in (self, other))
        bodies, other_bodies = self.bodies, other.bodies
        return (
            mine == theirs
            and bodies.keys() == other_bodies.keys()
            and all(body.equals(other_bodies[name]) for name, body in bodies.items())
            and same_settings(self._plain_attributes, other._plain_attributes)
        )

    @property
    def _plain_attributes(self) -> dict[str, Any]:
        return {name: value for name, value in self.attributes.items() if not isinstance(value, Body)}


class Block:
    """Variables and the Operators that work on them, in order."""

    def __init__(self, program: Program, index: int, parent_index: int = -1):
        self.program = program
        self.idx = index
        self.parent_idx = parent_index
        self.vars: dict[str, Variable] = {}
        self.ops: list[Operator] = []

    def var(self, name: str) -> Variable:
        """The variable of that name, here or in a block around this one."""
        found = self.find_var(name)
        if found is None:
            raise ProgramError(f"block {self.idx} has no variable {name!r}; it has {', '.join(self.vars) or 'none'}")
        return found

    def find_var(self, name: str) -> Variable | None:
        """The variable of that name, or None."""
        if name in self.vars:
            return self.vars[name]
        return self.program.blocks[self.parent_idx].find_var(name) if self.parent_idx >= 0 else None

    def has_var(self, name: str) -> bool:
        return name in self.vars

    def is_within(self, other: Block) -> bool:
        """Whether this is the other block, or one inside it."""
        block: Block | None = self
        while block is not None and block is not other:
            block = self.program.blocks[block.parent_idx] if block.parent_idx >= 0 else None
        return block is other

    def create_var(
        self, name: str | None = None, shape: Sequence[AnySize | None] = (), dtype: Any = "float32", **flags: Any
    ) -> Variable:
        """A new variable; a name that is taken gives the variable that has it, if that is of the same kind."""
        name = name or names.generate("tmp")
        variable = self.program.variable_class(self, name, shape, dtype, **flags)
        return self._add(variable)

    def create_parameter(
        self, name: str, shape: Sequence[int], dtype: Any = "float32", trainable: bool = True
    ) -> Parameter:
        parameter = self._add(Parameter(self, name, shape, dtype, trainable))
        if not isinstance(parameter, Parameter):
            raise ProgramError(f"variable {name} is there already, and is no parameter")
        return parameter

    def _add(self, variable: Variable) -> Variable:
        taken = self.vars.setdefault(variable.name, variable)
        if taken is variable:
            tell_watchers(self, variable)
        if taken.spec != variable.spec:
            raise ProgramError(f"variable {taken.name} is there already as {taken.spec}; it cannot be {variable.spec}")
        return taken

    def rename_var(self, old: str, new: str) -> None:
        """Give a variable another name, in every operator that reads or writes it."""
        if new in self.vars:
            raise ProgramError(f"variable {old} cannot be renamed to {new}: there is a variable of that name already")
        variable = self.vars.pop(old)
        variable.name = new
        self.vars[new] = variable
        if old in self.program.schedulers:
            self.program.schedulers[new] = self.program.schedulers.pop(old)
        replace_name(self, old, new)

    def all_parameters(self) -> list[Parameter]:
        return [v for v in self.vars.values() if isinstance(v, Parameter)]

    def as_variable(self, value: Any) -> Variable | None:
        """A value as a variable of this block: a number or an array becomes a constant."""
        return as_variable(self, value)

    def append_op(
        self,
        definition: OpDef,
        inputs: Sequence[Variable | None],
        attributes: Mapping[str, Any] | None = None,
        into: Sequence[Variable] | None = None,
    ) -> list[Variable]:
        """Append an operator; its outputs are `into`, or new variables of the inferred shapes and types."""
        attributes = dict(definition.attributes if attributes is None else attributes)
        check_readable(self, definition, inputs)
        specs = definition.infer_outputs([None if v is None else v.spec for v in inputs], attributes)
        wanted = definition.differentiable and any(v is not None and not v.stop_gradient for v in inputs)
        flows = [wanted and spec.dtype != "object" and is_float(spec.dtype) for spec in specs]
        reads = [None if v is None else v.name for v in inputs]
        place, written_over = "", into is not None
        if into is None:
            into = [
                self.create_var(
                    names.generate(f"{definition.name}.{definition.outputs[min(i, len(definition.outputs) - 1)]}"),
                    spec.shape,
                    spec.dtype,
                    stop_gradient=not flow,
                )
                for i, (spec, flow) in enumerate(zip(specs, flows, strict=True))
            ]
        else:
            place = user_location()
            for variable, spec, flow in zip(into, specs, flows, strict=True):
                before = prepare_write(self, definition, variable, spec, flow, reads)
                reads = [before if name == variable.name else name for name in reads]
        outputs = [v.name for v in into]
        self.ops.append(Operator(definition, reads, outputs, attributes, self.program.role, place))
        tell_watchers(self, self.ops[-1])
        if written_over:
            for variable in into:
                variable.changed()
        return list(into)

    def add_op(self, operator: Operator) -> None:
        """Append an operator that exists already, on variables of this block."""
        for name in operator.outputs:
            if name in self.vars and not self.vars[name].persistable and any(name in op.outputs for op in self.ops):
                old = keep_old_value(self, self.vars[name])
                operator.inputs = tuple(old if given == name else given for given in operator.inputs)
        self.ops.append(operator)

    def copied_into(self, program: Program, parent_index: int = -1, for_test: bool = False) -> Block:
        """A copy that is appended to another Program; with `for_test`, without backward pass and update."""
        copied = Block(program, len(program.blocks), parent_index)
        program.blocks.append(copied)
        operators = _of_the_forward_pass(self) if for_test else self.ops
        copied.ops = [op.copied_into(copied, for_test) for op in operators]
        used = {name for op in copied.ops for name in (*op.inputs, *op.outputs)} if for_test else set()
        for name, variable in self.vars.items():
            if not for_test or name in used or variable.is_data or self.idx:
                copied.vars[name] = copy.copy(variable)
                copied.vars[name].block = copied
        return copied

    def equals(self, other: Block) -> bool:
        """Whether the other block has the same variables and operators."""
        variables, others = (list(map(str, block.vars.values())) for block in (self, other))
        same = variables == others and len(self.ops) == len(other.ops)
        return same and all(op.equals(other_op) for op, other_op in zip(self.ops, other.ops, strict=True))

    def __str__(self) -> str:
        return format_block(self)


def _of_the_forward_pass(block: Block) -> Iterator[Operator]:
    """The operators without the backward pass, the update, and those that read only what these two make."""
    gone: set[str] = set()
    for op in block.ops:
        if op.role == FORWARD and gone.isdisjoint(filter(None, op.inputs)):
            yield op
        else:
            gone.update(name for name in op.outputs if not block.var(name).persistable)


class Schedule(Protocol):
    """What says the value of a learning-rate variable before each run."""

    def get_lr(self) -> float:
        """The learning rate now."""

    def advance(self) -> None:
        """Note that the Program ran once."""

    @property
    def advances(self) -> bool:
        """Whether a run changes the rate."""


Explain = Callable[["Program", Sequence[str], bool], str]

EXPLANATIONS: dict[str, Explain] = {}
"""By the name of an engine, what says how it would run a Program; an engine that can tell adds itself."""


class Program:
    """Blocks, of which the first is the whole and the others belong to control flow."""

    def __init__(self) -> None:
        self.blocks = [Block(self, 0)]
        self.random_seed: int | None = None
        """If this is a number, the random operators that are appended draw the same numbers at every run."""
        self.role = FORWARD
        self.random_count = 0
        """How many random streams were given out."""
        self.schedulers: dict[str, Schedule] = {}
        """What sets learning-rate variables before each run, by the names of the variables."""
        self.cached: dict[Any, Any] = {}
        """What was made from the Program as it was then (see `app.graph.cache`)."""
        self._current = 0

    def global_block(self) -> Block:
        return self.blocks[0]

    def current_block(self) -> Block:
        return self.blocks[self._current]

    def block(self, index: int) -> Block:
        return self.blocks[index]

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    variable_class: ClassVar[type[Variable]] = Variable
    """The class of its variables."""

    def captured(self, value: Any) -> Variable | None:
        """The variable that stands for a value from outside, such as a Tensor; None, unless a subclass knows one."""
        return None

    def list_vars(self) -> Iterator[Variable]:
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Parameter]:
        return [p for block in self.blocks for p in block.all_parameters()]

    @contextmanager
    def sub_block(self) -> Iterator[Block]:
        """Inside the block, append operators to a new Block within the current one."""
        block = Block(self, len(self.blocks), self._current)
        self.blocks.append(block)
        outside, self._current = self._current, block.idx
        try:
            yield block
        except BaseException:
            del self.blocks[block.idx :]
            raise
        finally:
            self._current = outside

    @contextmanager
    def appending_to(self, block: Block) -> Iterator[None]:
        """Inside the block, append operators to a Block that was begun before."""
        outside, self._current = self._current, block.idx
        try:
            yield
        finally:
            self._current = outside

    @contextmanager
    def appending(self, role: str) -> Iterator[None]:
        """Inside the block, mark the operators that are appended as part of the backward pass or of the update."""
        outside, self.role = self.role, role
        try:
            yield
        finally:
            self.role = outside

    def next_seed(self) -> tuple[int, int] | None:
        """The random stream for the operator that is appended next; None if every run is to differ."""
        if self.random_seed is None:
            return None
        self.random_count += 1
        return self.random_seed, self.random_count

    def clone(self, for_test: bool = False) -> Program:
        """A copy; with `for_test`, without the operators of the backward pass and the update.

        Operators that behave differently in training, such as dropout, then behave as they do in use.
        """
        copied = self._copy_without_blocks()
        copied.schedulers = {} if for_test else copied.schedulers
        self.global_block().copied_into(copied, for_test=for_test)
        return copied

    def clone_without_operators(self) -> Program:
        """A copy that has the variables of the global block and no operators."""
        copied = self._copy_without_blocks()
        copied.blocks = [Block(copied, 0)]
        for name, variable in self.global_block().vars.items():
            copied.blocks[0].vars[name] = copy.copy(variable)
            copied.blocks[0].vars[name].block = copied.blocks[0]
        return copied

    def _copy_without_blocks(self) -> Program:
        copied = Program()
        copied.blocks = []
        copied.random_seed, copied.random_count = self.random_seed, self.random_count
        copied.schedulers = dict(self.schedulers)
        return copied

    def explain(self, fetch_list: Sequence[Variable | str] = (), source: bool = True, engine: str = "compiled") -> str:
        """How an engine would run each operator, and why; then the source that it generates."""
        if engine not in EXPLANATIONS:
            known = ", ".join(EXPLANATIONS) or "none: import app.engine"
            raise ProgramError(f"there is no engine {engine!r} that explains Programs; there are {known}")
        return EXPLANATIONS[engine](self, [item if isinstance(item, str) else item.name for item in fetch_list], source)

    # What persists between runs

    def state_dict(self, mode: str = "all", scope: Scope | None = None) -> dict[str, np.ndarray]:
        """Copies of the persistable values by name: of parameters ("param"), of the others ("opt"), or of all."""
        if mode not in ("all", "param", "opt"):
            raise ProgramError(f"state_dict: mode is 'all', 'param' or 'opt', not {mode!r}")
        kept = (v for v in self._persistable() if mode in ("all", "param" if isinstance(v, Parameter) else "opt"))
        scope = global_scope() if scope is None else scope
        return {v.name: np.array(scope.value(v.name)) for v in kept}

    def set_state_dict(self, state_dict: Mapping[str, Any], scope: Scope | None = None) -> None:
        """Set the values that `state_dict` returned. If a shape does not fit, nothing changes.

        Values that are not in the dictionary stay; names that the Program does not have are warned of.
        """
        known = {v.name: v for v in self._persistable()}
        unknown = [name for name in state_dict if name not in known]
        if unknown:
            warnings.warn(f"Program.set_state_dict: {', '.join(unknown)}: not in this Program", stacklevel=2)
        found = {name: np.asarray(state_dict[name]) for name in known if name in state_dict}
        for name, value in found.items():
            if value.shape != known[name].shape:
                raise ShapeError(
                    f"Program.set_state_dict: {name} has shape {list(known[name].shape)}, "
                    f"the state dict has {list(value.shape)}; nothing was changed"
                )
        scope = global_scope() if scope is None else scope
        scope.values.update({name: value.astype(known[name].dtype) for name, value in found.items()})

    def _persistable(self) -> list[Variable]:
        return [v for v in self.list_vars() if v.persistable]

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The Program as text, as `print` shows it."""
        return str(self)

    def __str__(self) -> str:
        return str(self.global_block())

    def equals(self, other: Program) -> bool:
        """Whether the other Program has the same variables and operators; `==` says whether it is the same object."""
        return self.global_block().equals(other.global_block())
