"""Appending operators to a Block: constants, overwritten variables, checks of inputs, and watchers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.errors import ProgramError
from app.graph.variable import Variable
from app.ops.creation import assign_value, fill_constant
from app.ops.definition import OpDef
from app.ops.dtype import get_default_dtype
from app.ops.spec import UNKNOWN, Spec
from app.ops.values import Operand

if TYPE_CHECKING:
    from app.graph.program import Block, Operator

    Watcher = Callable[[Block, Variable | Operator], None]

# Watchers

_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


def notify_watchers(block: Block, added: Variable | Operator) -> None:
    """Call the watchers of this thread with a variable or operator added to a block."""
    for watcher in _watchers.get():
        watcher(block, added)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Inside the block, call `watcher` with every variable and operator that this thread adds to a Program."""
    _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.set(tuple(w for w in _watchers.get() if w is not watcher))


# Inputs


def as_variable(block: Block, value: Operand) -> Variable | None:
    """A value as a variable of a block; numbers and arrays become constants."""
    if value is None or isinstance(value, Variable):
        return value
    captured = block.program.captured(value)
    if captured is not None:
        return captured
    if isinstance(value, (bool, int, float)):
        value = np.asarray(value, get_default_dtype() if isinstance(value, float) else None)
    if not hasattr(value, "__array__") or hasattr(value, "apply_operator"):
        raise ProgramError(
            f"a {type(value).__name__} cannot be an input of an operator in a Program: "
            "give a Variable, a number or a NumPy array; make the parameters and layers of a Program after "
            "opsmith.enable_static()"
        )
    return constant(block, value)


def constant(block: Block, array: npt.ArrayLike) -> Variable:
    """Append an operator that returns the elements of an array."""
    array = np.asarray(array)
    form = {"shape": array.shape, "dtype": array.dtype.name}
    if array.size != 1:
        return block.append_op(assign_value, [], {"values": tuple(array.ravel().tolist()), **form})[0]
    value = array.item()
    if isinstance(value, float):
        value = float(str(array.dtype.type(value)))  # the shortest decimal number that rounds to the same value
    return block.append_op(fill_constant, [], {"value": value, **form})[0]


def check_readable(block: Block, definition: OpDef, inputs: Sequence[Variable | None]) -> None:
    """Raise an error for an input of another Program, or of a branch or a loop that does not contain the block."""
    for variable in inputs:
        if variable is None or variable.block is block:
            continue
        if variable.program is not block.program:
            raise ProgramError(f"{definition.label} cannot read {variable.name} here: it belongs to another Program")
        if variable.block.idx and not block.is_within(variable.block):
            raise ProgramError(
                f"{definition.label} cannot read {variable.name} here: it is computed inside block "
                f"{variable.block.idx}, in a branch or a loop; return it from the function that computes it"
            )


# Overwriting variables


def prepare_write(
    block: Block, definition: OpDef, variable: Variable, spec: Spec, flows: bool, reads: Sequence[str | None]
) -> str:
    """Prepare a variable to be overwritten by an operator; returns the name of its old value.

    Persistable variables are changed in place. For any other variable, the old value gets a new name.
    """
    if not isinstance(variable, Variable):
        raise ProgramError(
            f"{definition.label} runs when the Program does, so it cannot write to a {type(variable).__name__}, "
            "which has its value now; pass a Variable"
        )
    if not _may_become(variable.spec, spec):
        raise ProgramError(
            f"{definition.label} returns {spec}, which cannot be written to {variable.name} of {variable.spec}: "
            "a variable keeps its number of axes, its sizes and its element type; use a new variable"
        )
    has_value = any(variable.name in op.outputs for op in variable.block.ops)
    if variable.persistable or variable.block is not block:  # in a branch or a loop, `Traced.close` renames the values
        if flows and has_value and not variable.persistable:
            variable.stop_gradient = False
        return variable.name
    if variable.is_data:
        if variable.name in reads or any(variable.name in op.inputs for op in block.ops):
            raise ProgramError(
                f"{definition.label} cannot write to {variable.name}, which is fed and was read before; "
                "write to a variable of its own, such as opsmith.assign(x)"
            )
        variable.is_data = False
    old = keep_old_value(block, variable) if has_value else variable.name
    variable.stop_gradient = not flows or (variable.stop_gradient and not has_value)
    if has_value:
        variable.shape = spec.shape
    return old


def keep_old_value(block: Block, variable: Variable) -> str:
    """Rename the old value of a variable, for example to x@0, in all operators; returns the new name.

    Every name then has a single value, which gradients, passes and engines rely on.
    """
    version = 0
    while f"{variable.name}@{version}" in block.vars:
        version += 1
    old = copy.copy(variable)
    old.name = f"{variable.name}@{version}"
    variable.gradient = None
    block.vars[old.name] = old
    replace_name(block, variable.name, old.name)
    return old.name


def replace_name(block: Block, old: str, new: str) -> None:
    """Use another name in the operators of a block, and in those of blocks inside it that have no such variable."""
    for inner in block.program.blocks:
        if inner is block or (old not in inner.vars and inner.is_within(block)):
            for op in inner.ops:
                if old in op.inputs or old in op.outputs:
                    op.inputs = tuple(new if name == old else name for name in op.inputs)
                    op.outputs = tuple(new if name == old else name for name in op.outputs)


def _may_become(old: Spec, new: Spec) -> bool:
    """Whether a variable can be overwritten with such a value, as far as sizes are known."""
    same_kind = len(old.shape) == len(new.shape) and old.dtype == new.dtype
    return same_kind and all(a == b or UNKNOWN in (a, b) for a, b in zip(old.shape, new.shape, strict=True))
