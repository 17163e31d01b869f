"""A Program as plain data: Blocks of Operators that work on named Variables. It executes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from app.errors import ProgramError
from app.graph import names
from app.graph.body import Body
from app.graph.places import users_line
from app.graph.printing import format_block
from app.graph.state import Kept
from app.graph.variable import Parameter, Variable
from app.graph.watchers import tell
from app.ops.creation import assign_value, fill_constant
from app.ops.definition import OpDef
from app.ops.dtype import get_default_dtype, is_float
from app.ops.settings import is_usual, same_settings, shown
from app.ops.spec import UNKNOWN, Spec

FORWARD, BACKWARD, OPTIMIZE = "forward", "backward", "optimize"


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
        """The setting of that name."""
        return self.attributes[name]

    @property
    def bodies(self) -> dict[str, Body]:
        """What runs inside the operator, by the name of the attribute; most operators have nothing."""
        return {name: value for name, value in self.attributes.items() if isinstance(value, Body)}

    def copied_into(self, block: Block, for_test: bool = False) -> Operator:
        """A copy for another block; what runs inside is copied into that block's Program, too."""
        copied = Operator(self.definition, self.inputs, self.outputs, self.attributes, self.role, self.place)
        for name, body in self.bodies.items():
            copied.attributes[name] = body.copied(lambda inner: inner.copied_into(block.program, block.idx, for_test))
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operator):
            return False
        mine, theirs = ((op.definition, op.inputs, op.outputs, op.role) for op in (self, other))
        return mine == theirs and same_settings(self.attributes, other.attributes)

    __hash__ = object.__hash__


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
        self, name: str | None = None, shape: Sequence[int | None] = (), dtype: Any = "float32", **flags: Any
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
            tell(self, variable)
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
        self._replace_name(old, new)

    def _replace_name(self, old: str, new: str) -> None:
        """Use another name in the operators here, and in those of blocks inside that have no variable of that name."""
        for block in self.program.blocks:
            if block is self or (old not in block.vars and block.is_within(self)):
                for op in block.ops:
                    if old in op.inputs or old in op.outputs:
                        op.inputs = tuple(new if name == old else name for name in op.inputs)
                        op.outputs = tuple(new if name == old else name for name in op.outputs)

    def _keep_old_value(self, variable: Variable) -> str:
        """Let the value that a variable has so far go on under another name, as it gets a new one; gives that name.

        Every name then stands for one value: gradients, passes and engines need not ask for which.
        """
        version = 0
        while f"{variable.name}@{version}" in self.vars:
            version += 1
        old = copy.copy(variable)
        old.name = f"{variable.name}@{version}"
        variable.gradient = None
        self.vars[old.name] = old
        self._replace_name(variable.name, old.name)
        return old.name

    def all_parameters(self) -> list[Parameter]:
        return [v for v in self.vars.values() if isinstance(v, Parameter)]

    def as_variable(self, value: Any) -> Variable | None:
        """A value as a variable of this block: a number or an array becomes a constant."""
        if value is None or isinstance(value, Variable):
            return value
        captured = self.program.captured(value)
        if captured is not None:
            return captured
        if isinstance(value, (bool, int, float)):
            value = np.asarray(value, get_default_dtype() if isinstance(value, float) else None)
        if not hasattr(value, "__array__") or hasattr(value, "apply_operator"):
            raise ProgramError(
                f"a {type(value).__name__} cannot be an input of an operator in a Program: "
                "give a Variable, a number or a NumPy array"
            )
        return constant(self, value)

    def append_op(
        self,
        definition: OpDef,
        inputs: Sequence[Variable | None],
        attributes: Mapping[str, Any] | None = None,
        into: Sequence[Variable] | None = None,
    ) -> list[Variable]:
        """Append an operator; its outputs are `into`, or new variables of the inferred shapes and types."""
        attributes = dict(definition.attributes if attributes is None else attributes)
        self._refuse_values_of_other_blocks(definition, inputs)
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
            place = users_line()
            for variable, spec, flow in zip(into, specs, flows, strict=True):
                before = self._about_to_write(definition, variable, spec, flow, reads)
                reads = [before if name == variable.name else name for name in reads]
        outputs = [v.name for v in into]
        self.ops.append(Operator(definition, reads, outputs, attributes, self.program.role, place))
        tell(self, self.ops[-1])
        if written_over:
            for variable in into:
                variable.changed()
        return list(into)

    def add_op(self, operator: Operator) -> None:
        """Append an operator that was made elsewhere, on variables that are there."""
        for name in operator.outputs:
            if name in self.vars and not self.vars[name].persistable and any(name in op.outputs for op in self.ops):
                old = self._keep_old_value(self.vars[name])
                operator.inputs = tuple(old if given == name else given for given in operator.inputs)
        self.ops.append(operator)

    def _about_to_write(
        self, definition: OpDef, variable: Variable, spec: Spec, flows: bool, reads: Sequence[str | None]
    ) -> str:
        """Make a variable ready for the value that an operator gives it; gives the name of the value that it has now.

        What a Program keeps between runs is changed in place. Any other variable is a new value from here on.
        """
        if not isinstance(variable, Variable):
            raise ProgramError(
                f"{definition.label} runs when the Program does, so it cannot write to a {type(variable).__name__}, "
                "which has its value now; give it a Variable"
            )
        if not _may_become(variable.spec, spec):
            raise ProgramError(
                f"{definition.label} gives {spec}, which cannot be written to {variable.name} of {variable.spec}: "
                "a variable keeps its number of axes, its sizes and its element type; use a new variable"
            )
        known = any(variable.name in op.outputs for op in variable.block.ops)
        if variable.persistable or variable.block is not self:  # in a branch or a loop, `Traced.close` names the values
            if flows and known and not variable.persistable:
                variable.stop_gradient = False
            return variable.name
        if variable.is_data:
            if variable.name in reads or any(variable.name in op.inputs for op in self.ops):
                raise ProgramError(
                    f"{definition.label} cannot write to {variable.name}, which is fed and was read before; "
                    "write to a variable of its own, such as app.assign(x)"
                )
            variable.is_data = False
        old = self._keep_old_value(variable) if known else variable.name
        variable.stop_gradient = not flows or (variable.stop_gradient and not known)
        if known:
            variable.shape = spec.shape
        return old

    def _refuse_values_of_other_blocks(self, definition: OpDef, inputs: Sequence[Variable | None]) -> None:
        for variable in inputs:
            if variable is None or variable.block is self or variable.block.idx == 0:
                continue
            if variable.program is self.program and not self.is_within(variable.block):
                raise ProgramError(
                    f"{definition.label} cannot read {variable.name} here: it is made inside block "
                    f"{variable.block.idx}, in a branch or a loop; return it from the function that makes it"
                )

    def copied_into(self, program: Program, parent_index: int = -1, for_test: bool = False) -> Block:
        """A copy that is appended to another Program; `for_test`, without backward pass and update."""
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

    def says_the_same(self, other: Block) -> bool:
        """Whether the other block has the same variables and operators."""
        return self.ops == other.ops and list(map(str, self.vars.values())) == list(map(str, other.vars.values()))

    def __str__(self) -> str:
        return format_block(self)


def _of_the_forward_pass(block: Block) -> Iterator[Operator]:
    """The operators that remain without the backward pass and the update, and what looks at these alone."""
    gone: set[str] = set()
    for op in block.ops:
        if op.role == FORWARD and gone.isdisjoint(filter(None, op.inputs)):
            yield op
        else:
            gone.update(name for name in op.outputs if not block.var(name).persistable)


def _may_become(known: Spec, new: Spec) -> bool:
    """Whether a variable can be given such a value, as far as sizes are known."""
    alike = len(known.shape) == len(new.shape) and known.dtype == new.dtype
    return alike and all(a == b or UNKNOWN in (a, b) for a, b in zip(known.shape, new.shape, strict=True))


def constant(block: Block, array: Any) -> Variable:
    """Append the operator that gives the numbers of an array."""
    array = np.asarray(array)
    form = {"shape": array.shape, "dtype": array.dtype.name}
    if array.size != 1:
        return block.append_op(assign_value, [], {"values": tuple(array.ravel().tolist()), **form})[0]
    value = array.item()
    if isinstance(value, float):
        value = float(str(array.dtype.type(value)))  # the shortest number that the type rounds to the same
    return block.append_op(fill_constant, [], {"value": value, **form})[0]


class Program(Kept):
    """Blocks, of which the first is the whole and the others belong to control flow."""

    def __init__(self) -> None:
        self.blocks = [Block(self, 0)]
        self.random_seed: int | None = None
        """Where it is a number, the random operators that are appended draw the same numbers at every run."""
        self.role = FORWARD
        self.schedulers: dict[str, Any] = {}
        """Learning-rate variables by name, with what says their value (`get_lr()`) before each run."""
        self.made: dict[Any, Any] = {}
        """What was made of the Program as it was then (see `app.graph.contents`)."""
        self._current = 0
        self._random_count = 0

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
    """What its variables are."""

    def captured(self, value: Any) -> Variable | None:
        """The variable that stands for a value from outside; a Program knows none, unless it says otherwise."""
        return None

    def list_vars(self) -> Iterator[Variable]:
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Parameter]:
        return [p for block in self.blocks for p in block.all_parameters()]

    @contextmanager
    def sub_block(self) -> Iterator[Block]:
        """Append operators to a new block, inside the current one, meanwhile."""
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
    def appending(self, role: str) -> Iterator[None]:
        """Mark the operators that are appended meanwhile as part of the backward pass or of the update."""
        outside, self.role = self.role, role
        try:
            yield
        finally:
            self.role = outside

    def next_seed(self) -> tuple[int, int] | None:
        """The random stream for the operator that is appended next; None where every run shall differ."""
        if self.random_seed is None:
            return None
        self._random_count += 1
        return self.random_seed, self._random_count

    def clone(self, for_test: bool = False) -> Program:
        """A copy of its own; `for_test`, without the operators of the backward pass and the update.

        Operators that do something else in training, as dropout does, then do what they do in use.
        """
        copied = self._copy_without_blocks()
        copied.schedulers = {} if for_test else copied.schedulers
        self.global_block().copied_into(copied, for_test=for_test)
        return copied

    def clone_without_operators(self) -> Program:
        """A copy that has the variables of the global block, and nothing that computes them."""
        copied = self._copy_without_blocks()
        copied.blocks = [Block(copied, 0)]
        for name, variable in self.global_block().vars.items():
            copied.blocks[0].vars[name] = copy.copy(variable)
            copied.blocks[0].vars[name].block = copied.blocks[0]
        return copied

    def _copy_without_blocks(self) -> Program:
        copied = Program()
        copied.blocks = []
        copied.random_seed, copied._random_count = self.random_seed, self._random_count
        copied.schedulers = dict(self.schedulers)
        return copied

    explainer: ClassVar[Callable[..., str] | None] = None
    """What says how a Program would be run natively; the engine that can tell sets it."""

    def explain(self, fetch_list: Sequence[Variable | str] = (), source: bool = True) -> str:
        """For each operator how it would run natively, and why; then the source that is generated."""
        if Program.explainer is None:
            raise ProgramError("no engine that explains Programs is loaded: import app.engine")
        return Program.explainer(self, [item if isinstance(item, str) else item.name for item in fetch_list], source)

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The Program as text, as `print` shows it."""
        return str(self)

    def __str__(self) -> str:
        return str(self.global_block())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Program) and self.global_block().says_the_same(other.global_block()))

    __hash__ = object.__hash__
