"""Tracing: a function is called with Variables, and the operators that it applies are recorded in a Program.

A Tensor from outside the function, such as a layer's parameter, is captured: it becomes a persistable variable that
gets its value at every run. In-place changes write into the Tensor's own memory.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any, Literal, NamedTuple

import numpy as np

from app.errors import DtypeError, GradientError, ProgramError, ShapeError
from app.graph import names
from app.graph.defaults import program_guard, static_mode
from app.graph.gradients import gradients
from app.graph.program import FORWARD, Program
from app.graph.variable import Variable
from app.jit.variable import Memory, TracedParameter, TracedVariable
from app.ops.creation import assign
from app.ops.definition import OpDef, apply
from app.ops.indexing import index_items, put_items, take_items
from app.ops.lowering import Alias
from app.ops.shaping import reshape_like
from app.ops.spec import UNKNOWN, spec_of
from app.tensor import Parameter, Tensor
from app.tensor.modes import Modes, modes, set_modes

MISSING = object()


class Again(Exception):  # noqa: N818 - not an error
    """Raised to trace again with new findings."""


class TracedProgram(Program):
    """The Program that a function is traced into."""

    variable_class = TracedVariable

    def __init__(self, tracer: Tracer):
        super().__init__()
        self.tracer: Tracer | None = tracer

    def captured(self, value: Any) -> Variable | None:
        """Return the variable of a captured Tensor."""
        return self.tracer.value(value) if self.tracer is not None and isinstance(value, Tensor) else None


@dataclass(eq=False)
class Captured:
    """A captured Tensor, or its gradient, and its variable."""

    tensor: Tensor
    variable: Variable
    of_gradient: bool = False

    @property
    def holder(self) -> Any:
        """The Tensor that currently holds the value."""
        return self.tensor.grad if self.of_gradient else self.tensor


class Kind(NamedTuple):
    """The common type and shape of the results of branches, or of a carried variable of a loop."""

    dtype: str
    shape: tuple[int, ...]


class Findings:
    """What tracing a loop's body has found out about the loop and its inner loops.

    When a body is traced again, findings about its inner loops are reused, so that the work grows linearly with the
    depth of loops.
    """

    def __init__(self) -> None:
        self.kinds: list[list[Kind | None]] = []
        """For each variable of the loop, the kinds of its leaves; None for a leaf that no iteration changes."""
        self.begins: dict[int, Any] = {}
        """Placeholders for variables without a value before the loop, by position."""
        self.tensors: list[tuple[TracedVariable, Kind]] = []
        """The traced Tensors that an iteration changes in place."""
        self.by_operator = False
        """Whether a `for` over a range is an operator, because a Tensor decides about its `break`."""
        self._inside: dict[tuple[str, int], Findings] = {}
        self._met: Counter[str] = Counter()

    def begin(self) -> None:
        """The body is traced from its beginning."""
        self._met.clear()

    def of(self, where: str) -> Findings:
        """Return the findings about an inner loop: the next one in a line of the source."""
        self._met[where] += 1
        return self._inside.setdefault((where, self._met[where]), Findings())


class Changes(dict[int, tuple[TracedVariable, TracedVariable]]):
    """The Tensors that a branch or a loop's body changes in place, by identity, each with a copy from its end."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: list[Memory] = []
        """All memory that it changes, also of what may be such a Tensor."""


class Tracer:
    """Records the operators that a function applies, and the Tensors and layers that it uses."""

    def __init__(self, converted: Callable[[Any], Callable[..., Any]], findings: Findings) -> None:
        self.converted = converted
        """Converts the control flow of a function that is called while tracing."""
        self.program = TracedProgram(self)
        self.startup = Program()
        self.captured: dict[int, Captured] = {}
        self.functions: dict[Any, CodeType] = {}
        """The user's functions that were called, each with its code, which reloading may replace."""
        self.layers: dict[int, Any] = {}
        """The called layers; the trace depends on their `training` and their hooks."""
        self.gradients: dict[int, tuple[Tensor, Any]] = {}
        """The Tensors whose `.grad` the function changes, each with what it was before."""
        self.gradients_read: dict[int, tuple[Tensor, bool]] = {}
        """The Tensors whose initial `.grad` it uses, each with whether there was one."""
        self.numbers: dict[int, tuple[Tensor, np.ndarray]] = {}
        """Tensors whose values were read by Python, each with a copy."""
        self.attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        """Attributes of layers that it sets, each with what it was before."""
        self.went_back = False
        """Whether the function ran a backward pass itself."""
        self._rates: dict[Any, Variable] = {}
        self._changes: dict[int, tuple[TracedVariable, dict[str, Any]]] | None = None
        """Traced Tensors that a branch or a loop's body has changed in place, each with what it was before."""
        self._touched: dict[int, tuple[Memory, int]] | None = None
        """Memory that it has changed, each with its version before."""
        self._looks_in = 0
        """The block of that branch or body."""
        self._undo: list[Callable[[], None]] | None = None
        """Functions that undo changes of Python objects, in order, for an attempt that may be repeated."""
        self.watches: list[Any] = []
        """What watches the user's objects in the branches and loops that are being traced."""
        self.streams: list[Any] = []
        """The streams of random numbers that the function made."""
        self.refusals: list[Exception] = []
        """Errors because Python asked for what is not known while tracing."""
        self.findings = findings
        """The findings about the loops of the current trace."""

    @contextmanager
    def active(self) -> Iterator[None]:
        """Send all operators to this tracer inside the block; attributes are restored afterwards."""
        outside = modes()
        set_modes(Modes(True, self))
        try:
            with program_guard(self.program, self.startup), static_mode():
                yield
        finally:
            set_modes(outside)
            self.program.tracer = None
            self._restore()

    def _restore(self) -> None:
        for tensor, before in self.gradients.values():
            tensor.grad = before
        for layer, name, before in self.attributes.values():
            now = layer.__dict__.get(name, MISSING)
            if holds_variables(now):
                delattr(layer, name) if before is MISSING else setattr(layer, name, before)

    # Operators

    def apply(self, definition: OpDef, inputs: Sequence[Any], attributes: Mapping[str, Any], into: Any = None) -> Any:
        """Append an operator on Tensors, Variables and numbers."""
        block = self.program.current_block()
        values = [self.value(x) if isinstance(x, (Tensor, Variable)) else x for x in inputs]
        variables = [block.as_variable(x) for x in definition.prepared(values)]
        targets: Any = None if into is None else [self.value(x) if isinstance(x, Tensor) else x for x in into]
        if targets is not None and any(isinstance(t, TracedVariable) and t.is_data for t in targets):
            for target, new in zip(targets, block.append_op(definition, variables, attributes), strict=True):
                target.become(new) if target.is_data else self.apply(assign, [new], {}, [target])
            return into
        outputs: Any = block.append_op(definition, variables, attributes, targets)
        if into is not None:
            return into
        if definition.views and not (definition is take_items and len(variables) > 1):
            for variable in outputs:
                variable.share_memory(variables[0], _whole(definition, variables[0], attributes))
        if not modes().on:
            for variable in outputs:
                variable.stop_gradient = True
        return outputs[0] if len(outputs) == 1 and not definition.many_outputs else tuple(outputs) or None

    def value(self, tensor: Any) -> Variable:
        """The variable that stands for a Tensor."""
        if isinstance(tensor, Variable):
            if isinstance(tensor, TracedVariable):
                tensor.check_current()
            return tensor
        known = self.captured.get(id(tensor))
        return known.variable if known is not None else self._capture(tensor)

    def constant(self, array: np.ndarray, stop_gradient: bool) -> Any:
        """Return a constant value."""
        value: Any = assign(self.program.current_block().as_variable(array))
        value.stop_gradient = stop_gradient
        return value

    def _capture(self, tensor: Tensor, of_gradient: bool = False) -> Variable:
        holder: Any = tensor.grad if of_gradient else tensor
        block = self.program.global_block()
        name = tensor._name or names.generate("captured")
        name = f"{name}@GIVEN" if of_gradient else name
        while any(inside.has_var(name) for inside in self.program.blocks):
            name = names.generate(name)
        spec = spec_of(holder)
        variable: TracedVariable
        if isinstance(holder, Parameter):
            variable = TracedParameter(block, name, spec.shape, spec.dtype, not holder.stop_gradient)
        else:
            flags = {"persistable": True, "stop_gradient": holder.stop_gradient}
            variable = TracedVariable(block, name, spec.shape, spec.dtype, **flags)
        block.vars[name] = variable
        self.captured[id(holder)] = Captured(tensor, variable, of_gradient)
        return variable

    # Changes in place

    def like(self, value: Any, variable: Variable, casting: Literal["same_kind", "unsafe"] = "unsafe") -> Variable:
        """A value as one of the shape and type of a variable whose place it takes."""
        new = self.program.current_block().as_variable(value)
        known = () if new is None else new.shape
        fits = len(known) == len(variable.shape) and all(
            a == b or UNKNOWN in (a, b) for a, b in zip(known, variable.shape, strict=True)
        )
        if new is None or not fits:
            raise ShapeError(
                f"{variable.name} of shape {list(variable.shape)} cannot be changed in place to the value {value!r}"
            )
        if new.dtype == variable.dtype:
            return new
        if not np.can_cast(new.dtype, variable.dtype, casting):
            raise DtypeError(
                f"{variable.name} of {variable.dtype} cannot be changed in place to {new.dtype}; use .astype"
            )
        return new.astype(variable.dtype)

    def replace(self, tensor: Tensor, value: Any) -> Tensor:
        """Assign a new value to a captured Tensor in every run."""
        self.apply(assign, [self.like(value, self.value(tensor))], {}, [tensor])
        return tensor

    def captured_as(self, variable: Variable) -> Tensor:
        """The Tensor that a variable stands for."""
        return next(c.tensor for c in self.captured.values() if c.variable is variable)

    def note_change(self, variable: TracedVariable) -> None:
        """A traced Tensor is about to be changed in place."""
        self.note_memory(variable.memory)
        if self._changes is not None and id(variable) not in self._changes:
            self._changes[id(variable)] = variable, dict(variable.__dict__)

    def note_memory(self, memory: Memory) -> None:
        """Memory is about to be changed."""
        if self._touched is not None:
            self._touched.setdefault(id(memory), (memory, memory.version))

    def may_change(self, variable: TracedVariable) -> bool:
        """Return whether code after the current block sees an in-place change."""
        return self.program.current_block().idx in (variable.home, self._looks_in)

    @contextmanager
    def changes(self) -> Iterator[Changes]:
        """Restore traced Tensors that are changed in place inside the block. The dictionary then holds, by identity,
        those that existed before the block, each with a copy of its value at the end of the block.
        """
        outside = self._changes, self._touched, self._looks_in
        self._changes, self._touched, self._looks_in = {}, {}, self.program.current_block().idx
        mark, found = self._looks_in, Changes()
        try:
            yield found
        finally:
            here, touched = self._changes, self._touched
            self._changes, self._touched, self._looks_in = outside
            found.update((key, (v, v.frozen())) for key, (v, _) in here.items() if v.home < mark)
            for variable, known in reversed(here.values()):
                variable.__dict__.clear()
                variable.__dict__.update(known)
            for memory, version in touched.values():
                memory.version = version
                found.memory.append(memory)

    # Changes of Python objects, which are undone when an attempt is repeated

    def note_contents(self, container: Any) -> None:
        """Record a Python container before it is changed."""
        if self._undo is not None and isinstance(container, CONTAINERS):
            contents = copy.copy(container)
            self._undo.append(lambda: restore(container, contents))

    def note_attribute_of(self, owner: Any, name: str) -> None:
        """Record an attribute of any object before it is set or deleted."""
        if self._undo is not None:
            before = getattr(owner, "__dict__", {}).get(name, MISSING)
            self._undo.append(lambda: _set_back(owner, name, before))

    def note_names(self, state: Any) -> None:
        """Record names of enclosing functions or a module before they are assigned."""
        if self._undo is not None:
            values = state.read()
            self._undo.append(lambda: state.write(values))

    def with_item(self, value: Any, index: Any, item: Any) -> Variable:
        """Return a value with the indexed part replaced."""
        arrays, items = index_items(index)
        whole: Variable = put_items([self.value(value), item, *arrays], items=items)
        return whole

    # Values read by Python

    def note_numbers(self, tensor: Tensor) -> None:
        """Record that Python reads a Tensor's values: the trace is valid only for these values."""
        known = self.captured.get(id(tensor))
        if known is not None and any(known.variable.name in op.outputs for b in self.program.blocks for op in b.ops):
            raise ProgramError(
                f"{known.variable.name} is changed by the traced function, so Python cannot read its numbers after "
                "that; compute with the Tensor itself"
            )
        self.numbers.setdefault(id(tensor), (tensor, tensor._array.copy()))

    # Gradients in the function

    def grad(
        self, outputs: Sequence[Any], inputs: Sequence[Any], starts: Sequence[Any], create_graph: bool, blocked: Any
    ) -> list[Any]:
        """Append operators that compute the gradients of some values with respect to others; None if there is none."""
        block = self.program.current_block()
        targets, sources = [self.value(x) for x in outputs], [self.value(x) for x in inputs]
        if block.idx or any(v.block is not block for v in targets):
            raise ProgramError("grad() in a branch or a loop that depends on a Tensor; call it before or after that")
        for target in targets:
            if target.stop_gradient:
                raise GradientError(f"grad of {target.name}, which has stop_gradient=True and so no gradient")
        before = len(block.ops)
        found = self._gradients(targets, sources, starts, [self.value(x) for x in blocked])
        for op in block.ops[before:]:
            op.role = FORWARD  # part of the function, not of its gradient
        return [g if g is None or create_graph else g.detach() for g in found]

    def _gradients(
        self, outputs: Sequence[Any], sources: Sequence[Any], starts: Sequence[Any], blocked: Sequence[Any] = ()
    ) -> list[Any]:
        """The gradients of outputs with respect to sources."""
        block = self.program.current_block()
        given = [None if start is None else self.value(block.as_variable(start)) for start in starts]
        found: list[Any] = gradients([self.value(x) for x in outputs], sources, given, blocked)
        return [None if g is None else g.here() for g in found]

    def backward(self, outputs: Sequence[Any], starts: Sequence[Any], inputs: Any = None) -> None:
        """Append the backward pass of some values, and add to the `.grad` of arguments and captured Tensors."""
        if inputs is not None:
            raise ProgramError("backward(inputs=...) in a traced function; use grad(outputs, inputs)")
        if self.program.current_block().idx:
            raise ProgramError("backward() in a branch or a loop that depends on a Tensor; call it after that")
        self.went_back = True
        block = self.program.global_block()
        given: list[Any] = [v for v in block.vars.values() if v.is_data and not v.stop_gradient]
        known = [c for c in self.captured.values() if not (c.of_gradient or c.variable.stop_gradient)]
        wanted = [*given, *(c.variable for c in known)]
        if not wanted:
            return
        found = self._gradients(outputs, wanted, starts)
        for variable, new in zip(given, found, strict=False):
            if new is not None:
                variable.grad = new if variable.grad is None else variable.grad + new
        for captured, new in zip(known, found[len(given) :], strict=True):
            if new is not None:
                before = self.gradient_of(captured.tensor)
                self.note_gradient(captured.tensor)
                captured.tensor.grad = new if before is None else before + new

    def note_gradient(self, tensor: Tensor) -> None:
        """The function is about to change the `.grad` of a Tensor."""
        self.gradients.setdefault(id(tensor), (tensor, tensor.grad))

    def gradient_of(self, tensor: Tensor) -> Any:
        """The `.grad` of a Tensor as it is now: a Variable, or None."""
        now = tensor.grad
        changed = id(tensor) in self.gradients
        if isinstance(now, Variable) or (now is None and changed):
            return now
        self.gradients_read.setdefault(id(tensor), (tensor, now is not None))
        if now is None:
            return None
        known = self.captured.get(id(now))
        return known.variable if known is not None else self._capture(tensor, of_gradient=True)

    def rate(self, optimizer: Any, dtype: str) -> Any:
        """Return the variable of an optimiser's learning rate."""
        key = id(optimizer), dtype
        if key not in self._rates:
            block = self.program.global_block()
            name = block.new_name("learning_rate")
            self._rates[key] = block.create_var(name, (), dtype, persistable=True, stop_gradient=True)
            self.program.schedulers[name] = optimizer
        return self._rates[key]

    # Layers

    def note_attribute(self, layer: Any, name: str) -> None:
        """The function is about to set an attribute of a layer."""
        self.attributes.setdefault((id(layer), name), (layer, name, layer.__dict__.get(name, MISSING)))
        self.note_attribute_of(layer, name)

    def forward_of(self, layer: Any) -> Callable[..., Any]:
        """Return a layer's `forward` with converted control flow."""
        self.layers[id(layer)] = layer
        return self.converted(layer.forward)

    def hooks_of(self, layer: Any) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return the hooks before and after a layer's `forward`, with converted control flow."""
        before, after = layer._forward_pre_hooks, layer._forward_post_hooks
        return ({k: self.converted(h) for k, h in before.items()}, {k: self.converted(h) for k, h in after.items()})

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """If the block raises an error or `Again`, undo its operators and its changes of attributes and containers."""
        block = self.program.current_block()
        blocks, operators = len(self.program.blocks), len(block.ops)
        outside, self._undo = self._undo, []
        try:
            yield
        except Exception:  # after an error too, the function may be traced again, for exact sizes
            for step in reversed(self._undo):
                step()
            del self.program.blocks[blocks:]
            for operator in block.ops[operators:]:
                for name in operator.outputs:
                    block.vars.pop(name, None)
            del block.ops[operators:]
            self._undo.clear()
            raise
        finally:
            undo, self._undo = self._undo, outside
            if self._undo is not None:
                self._undo += undo


def _whole(definition: OpDef, base: Any, attributes: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """Return the function from a view's new value to its base's new value; None if unknown."""
    if definition is take_items:
        return lambda part: put_items([base, part], items=attributes["items"])
    if isinstance(definition.lowering, Alias):
        return lambda part: apply(reshape_like, [part, base], {})
    return None


CONTAINERS = (list, dict, set, bytearray, deque, np.ndarray)
"""Mutable Python containers, and arrays."""


def _set_back(owner: Any, name: str, value: Any) -> None:
    """Restore an attribute."""
    if value is not MISSING:
        setattr(owner, name, value)
    elif name in getattr(owner, "__dict__", {}):
        delattr(owner, name)


def restore(container: Any, contents: Any) -> None:
    """Restore the contents of a container."""
    if isinstance(container, np.ndarray):
        if container.flags.writeable:
            container[...] = contents
        return
    container.clear()
    (container.update if isinstance(container, (dict, set)) else container.extend)(contents)


def holds_variables(value: Any) -> bool:
    """Return whether a value is or contains a Variable."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_variables, value))
    if isinstance(value, dict):
        return any(map(holds_variables, value.values()))
    return isinstance(value, Variable)
