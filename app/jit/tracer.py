"""Tracing: a function is called with Variables, and all that operators meet meanwhile becomes part of a Program.

A Tensor from outside of the function, as a layer's parameter is, is captured: a persistable variable stands for it,
and is given its numbers at every run. What is changed in place is changed in the Tensor's own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from app.errors import OperatorError, ProgramError
from app.graph import names
from app.graph.backward import gradients
from app.graph.defaults import program_guard, static_mode
from app.graph.program import Program
from app.graph.variable import Variable
from app.jit.variable import TracedParameter, TracedVariable
from app.ops.creation import assign
from app.ops.definition import OpDef, apply
from app.ops.indexing import array_index, put_items
from app.ops.spec import spec_of
from app.tensor import Parameter, Tensor
from app.tensor.modes import Modes, modes, set_modes

MISSING = object()


class TracedProgram(Program):
    """The Program that a function is traced into."""

    variable_class = TracedVariable

    def __init__(self, tracer: Tracer):
        super().__init__()
        self.tracer: Tracer | None = tracer

    def captured(self, value: Any) -> Variable | None:
        """The variable that stands for a Tensor from outside of the function."""
        return self.tracer.value(value) if self.tracer is not None and isinstance(value, Tensor) else None


@dataclass(eq=False)
class Captured:
    """A Tensor from outside, or the gradient of one, and what stands for it."""

    tensor: Tensor
    variable: Variable
    of_gradient: bool = False

    @property
    def holder(self) -> Tensor:
        """The Tensor that has the numbers now."""
        return self.tensor.grad if self.of_gradient else self.tensor  # type: ignore[return-value]


class Tracer:
    """What a function left behind while it was traced."""

    def __init__(self, converted: Callable[[Any], Callable[..., Any]]) -> None:
        self.converted = converted
        """What gives a function as it is called while tracing."""
        self.program = TracedProgram(self)
        self.startup = Program()
        self.backend = "compiled"
        self.captured: dict[int, Captured] = {}
        self.layers: dict[int, Any] = {}
        """The layers that were called, whose `training` is part of what was traced."""
        self.gradients: dict[int, tuple[Tensor, Any]] = {}
        """The Tensors whose `.grad` the function changes, each with what it was before."""
        self.gradients_read: dict[int, tuple[Tensor, bool]] = {}
        """Those whose `.grad` at the beginning it uses, each with whether there was one."""
        self.attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        """Attributes of layers that it sets, each with what it was before."""
        self.of_loops: list[Captured] = []
        """What loops over batches captured, whose Programs are their own."""
        self.given: dict[str, Variable] = {}
        """Variables of the function around a loop over batches, by the name of what stands for each."""
        self.datasets: list[Any] = []
        """The datasets among the arguments of the call that runs."""
        self.went_back = False
        """Whether it has run a backward pass itself."""
        self._rates: dict[Any, Variable] = {}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Hand all operators to this tracer inside the block; attributes are as before afterwards."""
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
        targets = None if into is None else [self.value(x) if isinstance(x, Tensor) else x for x in into]
        outputs = block.append_op(definition, variables, attributes, targets)
        if into is not None:
            return into
        if not modes().on:
            for variable in outputs:
                variable.stop_gradient = True
        return outputs[0] if len(outputs) == 1 and not definition.many_outputs else tuple(outputs) or None

    def value(self, tensor: Any) -> Variable:
        """The variable that stands for a Tensor."""
        if isinstance(tensor, Variable):
            return tensor if tensor.program is self.program else self._given(tensor)
        known = self.captured.get(id(tensor))
        return known.variable if known is not None else self._capture(tensor)

    def _capture(self, tensor: Tensor, of_gradient: bool = False) -> Variable:
        holder: Any = tensor.grad if of_gradient else tensor
        block = self.program.global_block()
        name = tensor._name or names.generate("captured")
        name = f"{name}@GIVEN" if of_gradient else name
        while block.has_var(name):
            name = names.generate(name)
        spec = spec_of(holder)
        variable: Variable
        if isinstance(holder, Parameter):
            variable = TracedParameter(block, name, spec.shape, spec.dtype, not holder.stop_gradient)
        else:
            variable = TracedVariable(
                block, name, spec.shape, spec.dtype, persistable=True, stop_gradient=holder.stop_gradient
            )
        block.vars[name] = variable
        self.captured[id(holder)] = Captured(tensor, variable, of_gradient)
        return variable

    def _given(self, variable: Variable) -> Variable:
        """What stands, in a loop over batches, for a variable of the function around it."""
        for name, known in self.given.items():
            if known is variable:
                return self.program.global_block().var(name)
        return self.give(variable, variable.spec.shape, variable.dtype)

    def give(self, variable: Any, shape: Sequence[int], dtype: str) -> Variable:
        """A persistable variable for a value from the function around."""
        block = self.program.global_block()
        name = names.generate("given")
        self.given[name] = variable
        return block.create_var(name, shape, dtype, persistable=True, stop_gradient=True)

    # Changes in place

    def like(self, value: Any, variable: Variable) -> Variable:
        """A value as one of the type of another."""
        new = self.program.current_block().as_variable(value)
        if new is None or (len(new.shape) == len(variable.shape) and new.shape != variable.shape):
            raise OperatorError(f"{variable.name} of shape {list(variable.shape)} cannot take the value {value!r}")
        return new if new.dtype == variable.dtype else new.astype(variable.dtype)

    def replace(self, tensor: Tensor, value: Any) -> Tensor:
        """Give a captured Tensor other numbers, whenever the function runs."""
        self.apply(assign, [self.like(value, self.value(tensor))], {}, [tensor])
        return tensor

    def with_item(self, value: Any, index: Any, item: Any) -> Variable:
        """A value with other numbers in the part that an index names."""
        arrays, items = array_index(index)
        return apply(put_items, [self.value(value), item, *arrays], {"items": items})

    # Gradients in the function

    def backward(self, loss: Variable, gradient: Any = None) -> None:
        """Append the backward pass of a loss, and add to the `.grad` of what was captured."""
        if self.program.current_block().idx:
            raise ProgramError("backward() in a branch or a loop that depends on a Tensor; call it after that")
        self.went_back = True
        block = self.program.global_block()
        given = [v for v in block.vars.values() if v.is_data and not v.stop_gradient]
        known = [c for c in self.captured.values() if not (c.of_gradient or c.variable.stop_gradient)]
        wanted = [*given, *(c.variable for c in known)]
        if not wanted:
            return
        found = gradients([loss], wanted, None if gradient is None else [gradient])
        for variable, new in zip(given, found, strict=False):
            if new is not None:
                variable.grad = new if variable.grad is None else variable.grad + new  # type: ignore[attr-defined]
        for captured, new in zip(known, found[len(given) :], strict=True):
            if new is not None:
                before = self.gradient_of(captured.tensor)
                self.note_gradient(captured.tensor)
                captured.tensor.grad = new if before is None else before + new  # type: ignore[assignment]

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

    def rate(self, optimizer: Any, factor: float, dtype: str) -> Any:
        """The learning rate that an optimiser has at each run."""
        key = id(optimizer), dtype
        if key not in self._rates:
            block = self.program.global_block()
            name = names.generate("learning_rate")
            self._rates[key] = block.create_var(name, (), dtype, persistable=True, stop_gradient=True)
            self.program.schedulers[name] = optimizer
        return self._rates[key] if factor == 1.0 else self._rates[key] * factor

    # Layers

    def note_attribute(self, layer: Any, name: str) -> None:
        """The function is about to set an attribute of a layer."""
        self.attributes.setdefault((id(layer), name), (layer, name, layer.__dict__.get(name, MISSING)))

    def forward_of(self, layer: Any) -> Callable[..., Any]:
        """What computes a layer's result: its `forward`, with its control flow converted."""
        self.layers[id(layer)] = layer
        return self.converted(layer.forward)

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """Forget afterwards what was appended inside the block."""
        with self.program.sub_block() as block:
            before = len(self.program.blocks) - 1
            yield
        del block.program.blocks[before:]


def holds_variables(value: Any) -> bool:
    """Whether a value is, or has in it, a Variable."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_variables, value))
    if isinstance(value, dict):
        return any(map(holds_variables, value.values()))
    return isinstance(value, Variable)
