"""Programs as plain data: Blocks of Operators on named Variables. They execute nothing."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from app.display import Displayed
from app.errors import ProgramError, ShapeError
from app.graph import names
from app.graph.build import (
    as_variable,
    check_readable,
    notify_watchers,
    prepare_write,
    replace_name,
)
from app.graph.scope import Scope, global_scope
from app.graph.show import format_block
from app.graph.variable import Parameter, Variable
from app.ops.definition import OpDef
from app.ops.dtype import DTypeLike, is_float
from app.ops.settings import format_setting, is_default, key_of_settings
from app.ops.size import AnySize
from app.ops.values import Attributes, Operand, Setting
from app.reading import user_place

FORWARD, BACKWARD, OPTIMIZE = "forward", "backward", "optimize"


class Body:
    """A sub-block that is an attribute of an operator. It reads only its inputs, which have names of their own."""

    def __init__(self, block: Block, inputs: Sequence[str], outputs: Sequence[str]):
        self.block = block
        self.inputs = tuple(inputs)
        """The variables of the block for the input values, in order."""
        self.outputs = tuple(outputs)
        """The returned variables, in order."""

    def output(self, index: int) -> Variable:
        """The returned variable at that position."""
        return self.block.var(self.outputs[index])

    def __repr__(self) -> str:
        return f"block {self.block.idx}"

    def equals(self, other: Body) -> bool:
        """Whether the other body is equal, except for the numbers of the blocks."""
        return (self.inputs, self.outputs) == (other.inputs, other.outputs) and self.block.equals(other.block)


class Operator:
    """One line of a Block: a definition applied to variables by name. An absent optional input is None."""

    __slots__ = ("attributes", "definition", "inputs", "outputs", "place", "role")

    def __init__(
        self,
        definition: OpDef,
        inputs: Sequence[str | None],
        outputs: Sequence[str],
        attributes: Attributes,
        role: str = FORWARD,
        place: str = "",
    ):
        self.definition = definition
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.attributes = dict(attributes)
        self.role = role
        self.place = place
        """The user's file and line that made the operator; '' where it was read from a file."""

    @property
    def type(self) -> str:
        return self.definition.name

    @property
    def input_arg_names(self) -> list[str]:
        return [name for name in self.inputs if name is not None]

    def attr(self, name: str) -> Setting:
        """The attribute of that name."""
        return self.attributes[name]

    @property
    def bodies(self) -> dict[str, Body]:
        """The bodies of the operator by the names of the attributes; most operators have none."""
        return {name: value for name, value in self.attributes.items() if isinstance(value, Body)}

    def copied_into(self, block: Block, for_test: bool = False) -> Operator:
        """A copy for another block; its bodies are copied into the Program of that block too."""
        copied = Operator(self.definition, self.inputs, self.outputs, self.attributes, self.role, self.place)
        for name, body in self.bodies.items():
            inside = body.block.copied_into(block.program, block.idx, for_test)
            copied.attributes[name] = Body(inside, body.inputs, body.outputs)
        if for_test and self.definition.has_training_mode:
            copied.attributes["training"] = False
        return copied

    def __str__(self) -> str:
        defaults = self.definition.attributes
        arguments = [name or "None" for name in self.inputs]
        arguments += [
            f"{k}={format_setting(v)}" for k, v in self.attributes.items() if not is_default(v, defaults.get(k))
        ]
        call = f"{self.type}({', '.join(arguments)})"
        return f"{', '.join(self.outputs)} = {call}" if self.outputs else call

    __repr__ = __str__

    def equals(self, other: Operator) -> bool:
        """Whether the other operator is equal, with variables of the same names."""
        own, others = ((op.definition, op.inputs, op.outputs, op.role) for op in (self, other))
        bodies, other_bodies = self.bodies, other.bodies
        return (
            own == others
            and bodies.keys() == other_bodies.keys()
            and all(body.equals(other_bodies[name]) for name, body in bodies.items())
            and key_of_settings(self._plain_attributes) == key_of_settings(other._plain_attributes)
        )

    @property
    def _plain_attributes(self) -> dict[str, Setting]:
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
        variable = self.find_var(name)
        if variable is None:
            raise ProgramError(f"block {self.idx} has no variable {name!r}; it has {', '.join(self.vars) or 'none'}")
        return variable

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

    def new_name(self, key: str) -> str:
        """A generated name that no variable of the Program has, as files and users give names too."""
        name = names.generate(key)
        while any(block.has_var(name) for block in self.program.blocks):
            name = names.generate(key)
        return name

    def create_var(
        self, name: str | None = None, shape: Sequence[AnySize | None] = (), dtype: DTypeLike = "float32", **flags: bool
    ) -> Variable:
        """Create a variable, or return the existing one of that name if its shape and type are the same."""
        name = name or self.new_name("tmp")
        variable = self.program.variable_class(self, name, shape, dtype, **flags)
        return self._add(variable)

    def create_parameter(
        self, name: str, shape: Sequence[int], dtype: DTypeLike = "float32", trainable: bool = True
    ) -> Parameter:
        parameter = self._add(Parameter(self, name, shape, dtype, trainable))
        if not isinstance(parameter, Parameter):
            raise ProgramError(f"variable {name} exists already, and is not a parameter")
        return parameter

    def _add(self, variable: Variable) -> Variable:
        existing = self.vars.setdefault(variable.name, variable)
        here = self.program.current_block()
        if here is not self and here.is_within(self) and here.find_var(variable.name) is not existing:
            raise ProgramError(f"block {here.idx} has a variable {variable.name} of its own; use another name")
        if existing is variable:
            notify_watchers(self, variable)
        if existing.spec != variable.spec:
            raise ProgramError(
                f"variable {existing.name} exists already as {existing.spec}; it cannot be {variable.spec}"
            )
        return existing

    def rename_var(self, old: str, new: str) -> None:
        """Give a variable another name, in every operator that reads or writes it."""
        if new in self.vars:
            raise ProgramError(f"variable {old} cannot be renamed to {new}: a variable of that name exists already")
        variable = self.vars.pop(old)
        variable.name = new
        self.vars[new] = variable
        if old in self.program.schedulers:
            self.program.schedulers[new] = self.program.schedulers.pop(old)
        replace_name(self, old, new)

    def all_parameters(self) -> list[Parameter]:
        return [v for v in self.vars.values() if isinstance(v, Parameter)]

    def as_variable(self, value: Operand) -> Variable | None:
        """A value as a variable of this block; numbers and arrays become constants."""
        return as_variable(self, value)

    def append_op(
        self,
        definition: OpDef,
        inputs: Sequence[Variable | None],
        attributes: Attributes | None = None,
        into: Sequence[Variable] | None = None,
    ) -> list[Variable]:
        """Append an operator; its outputs are `into`, or new variables of the inferred shapes and types."""
        attributes = dict(definition.attributes if attributes is None else attributes)
        if definition.random and attributes.get("seed") is None:
            attributes["seed"] = self.program.next_seed()
        check_readable(self, definition, inputs)
        specs = definition.infer_outputs([None if v is None else v.spec for v in inputs], attributes)
        needs_gradient = definition.differentiable and any(v is not None and not v.stop_gradient for v in inputs)
        flows = [needs_gradient and is_float(spec.dtype) for spec in specs]
        reads = [None if v is None else v.name for v in inputs]
        written_over = into is not None
        if into is None:
            into = [
                self.create_var(
                    self.new_name(f"{definition.name}.{definition.outputs[min(i, len(definition.outputs) - 1)]}"),
                    spec.shape,
                    spec.dtype,
                    stop_gradient=not flow,
                )
                for i, (spec, flow) in enumerate(zip(specs, flows, strict=True))
            ]
        else:
            for variable, spec, flow in zip(into, specs, flows, strict=True):
                before = prepare_write(self, definition, variable, spec, flow, reads)
                reads = [before if name == variable.name else name for name in reads]
        outputs = [v.name for v in into]
        self.ops.append(Operator(definition, reads, outputs, attributes, self.program.role, user_place()))
        notify_watchers(self, self.ops[-1])
        if written_over:
            for variable in into:
                variable.changed()
        return list(into)

    def copied_into(self, program: Program, parent_index: int = -1, for_test: bool = False) -> Block:
        """A copy appended to another Program; with `for_test`, without the backward pass and the update."""
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

    __repr__ = __str__


def _of_the_forward_pass(block: Block) -> Iterator[Operator]:
    """The operators of the forward pass, without those that depend on the backward pass or the update."""
    removed: set[str] = set()
    for op in block.ops:
        if op.role == FORWARD and removed.isdisjoint(filter(None, op.inputs)):
            yield op
        else:
            removed.update(name for name in op.outputs if not block.var(name).persistable)


class Schedule(Protocol):
    """A learning-rate schedule, which sets a variable before each run."""

    def get_lr(self) -> float:
        """The current learning rate."""


Explain = Callable[["Program", Sequence[str], bool], str]

EXPLANATIONS: dict[str, Explain] = {}
"""Functions that explain how an engine runs a Program, by the name of the engine; engines register themselves."""


class Program(Displayed):
    """A list of Blocks. The first one is the Program itself, the others are bodies of control flow."""

    def __init__(self) -> None:
        self.blocks = [Block(self, 0)]
        self.random_seed: int | None = None
        """If set, random operators appended from now on draw the same numbers in every run."""
        self.role = FORWARD
        self.random_count = 0
        """The number of random streams used."""
        self.schedulers: dict[str, Schedule] = {}
        """The learning-rate schedules, by the names of their variables."""
        self.cached: dict[Any, Any] = {}
        """Objects built from the Program (see `opsmith.graph.cache`)."""
        self._current = 0

    def global_block(self) -> Block:
        return self.blocks[0]

    def current_block(self) -> Block:
        return self.blocks[self._current]

    def block(self, index: int) -> Block:
        return self.blocks[index]

    variable_class: ClassVar[type[Variable]] = Variable
    """The class of its variables."""

    def captured(self, value: Operand) -> Variable | None:
        """The variable of a captured value such as a Tensor. None here; subclasses override it."""
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
        """The random stream of the next appended operator; None if every run draws different numbers."""
        if self.random_seed is None:
            return None
        self.random_count += 1
        return self.random_seed, self.random_count

    def clone(self, for_test: bool = False) -> Program:
        """A copy; with `for_test`, without the operators of the backward pass and the update.

        Operators that behave differently in training, such as dropout, are then in inference mode.
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
        """Text that describes how an engine runs each operator, and why, with the generated source."""
        if engine not in EXPLANATIONS:
            names = ", ".join(EXPLANATIONS) or "none: import opsmith.engine"
            raise ProgramError(f"there is no engine {engine!r} that explains Programs; expected one of {names}")
        return EXPLANATIONS[engine](self, [item if isinstance(item, str) else item.name for item in fetch_list], source)

    # Persistable values

    def state_dict(self, mode: str = "all", scope: Scope | None = None) -> dict[str, np.ndarray]:
        """Copies of the persistable values by name: of parameters ("param"), of the others ("opt"), or of all."""
        if mode not in ("all", "param", "opt"):
            raise ProgramError(f"state_dict: mode must be 'all', 'param' or 'opt', not {mode!r}")
        chosen = (v for v in self._persistable() if mode in ("all", "param" if isinstance(v, Parameter) else "opt"))
        scope = global_scope() if scope is None else scope
        return {v.name: np.array(scope.value(v.name)) for v in chosen}

    def set_state_dict(self, state_dict: Mapping[str, npt.ArrayLike], scope: Scope | None = None) -> None:
        """Set values that `state_dict` returned. If a shape does not match, nothing is changed.

        Values that are not in the dictionary are unchanged; names that the Program does not have cause a warning.
        """
        variables = {v.name: v for v in self._persistable()}
        unknown = [name for name in state_dict if name not in variables]
        if unknown:
            warnings.warn(f"Program.set_state_dict: {', '.join(unknown)}: not in this Program", stacklevel=2)
        arrays = {name: np.asarray(state_dict[name]) for name in variables if name in state_dict}
        for name, value in arrays.items():
            if value.shape != variables[name].shape:
                raise ShapeError(
                    f"Program.set_state_dict: {name} has shape {list(variables[name].shape)}, "
                    f"the state dict has {list(value.shape)}; nothing was changed"
                )
        values = {name: variables[name].fitting(value) for name, value in arrays.items()}
        (global_scope() if scope is None else scope).values.update(values)

    def _persistable(self) -> list[Variable]:
        return [v for v in self.list_vars() if v.persistable]

    def __str__(self) -> str:
        return str(self.global_block())

    __repr__ = __str__

    def equals(self, other: Program) -> bool:
        """Whether the other Program has the same variables and operators; `==` compares identity."""
        return self.global_block().equals(other.global_block())
