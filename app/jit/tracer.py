"""Tracing: a function is called with Variables, and the operators that it applies are recorded in a Program.

A Tensor from outside the function, such as a layer's parameter, is captured: it becomes a persistable variable that
gets its value at every run. In-place changes write into the Tensor's own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from app.errors import AppError, DtypeError, GradientError, ShapeError, add_note
from app.graph import names
from app.graph.defaults import program_guard, static_mode
from app.graph.gradients import gradients
from app.graph.program import FORWARD, Program
from app.graph.variable import Parameter as ProgramParameter
from app.graph.variable import Variable
from app.jit.variable import RefusedError, TracedParameter, TracedVariable, note_refusal
from app.ops.creation import assign
from app.ops.definition import OpDef
from app.ops.dtype import is_float
from app.ops.indexing import index_items, put_items, take_items
from app.ops.spec import UNKNOWN, spec_of
from app.reading import user_line
from app.static.structure import Structure
from app.tensor import Parameter, Tensor
from app.tensor.modes import Modes, modes, set_modes
from app.tensor.tape import has_hooks

MISSING = object()


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


class Region(NamedTuple):
    """A branch or the body of a loop over a Tensor, and the Python objects that it may change, by identity."""

    where: str
    own: dict[int, Any]


def check_no_hooks(name: str, tensor: Tensor) -> None:
    """Refuse a backward pass in a traced function for a Tensor with hooks."""
    if has_hooks(tensor):
        raise RefusedError(
            f"{name} has a hook for its gradient, which backward() in a traced function does not call; call backward() "
            "outside of the function, or change the gradient in it"
        )


class Tracer:
    """Records the operators that a function applies, and the Tensors and layers that it uses."""

    def __init__(self, converted: Callable[[Any], Callable[..., Any]]) -> None:
        self.converted = converted
        """Converts the control flow of a function that is called while tracing."""
        self.program = TracedProgram(self)
        self.startup = Program()
        self.captured: dict[int, Captured] = {}
        self.called: dict[int, Any] = {}
        """What converted code has called, and the objects whose methods these are, by identity."""
        self.layers: dict[int, Any] = {}
        """The called layers; the trace depends on their `training` and their hooks."""
        self.gradients: dict[int, tuple[Tensor, Any]] = {}
        """The Tensors whose `.grad` the function changes, each with what it was before."""
        self.gradients_read: dict[int, tuple[Tensor, bool]] = {}
        """The Tensors whose initial `.grad` it uses, each with whether there was one."""
        self.gradients_of_arguments: set[str] = set()
        """The arguments whose `.grad` it reads or sets, by name."""
        self.numbers: dict[int, tuple[Tensor, np.ndarray]] = {}
        """Tensors whose values were read by Python, each with a copy."""
        self.went_back = False
        """Whether the function ran a backward pass itself."""
        self.leaves: list[TracedVariable] = []
        """The leaves that the function has made, which get a gradient as the arguments do."""
        self.ends: dict[int, Tensor] = {}
        """The captured Tensors at which a backward pass ended, by identity."""
        self._rates: dict[Any, Variable] = {}
        self.ticks = 0
        """How many times a traced Tensor was changed in place."""
        self.regions: list[Region] = []
        """The branches and the bodies of loops that are being traced, the innermost one last."""
        self.refusals: list[tuple[Any, str]] = []
        """Errors that end tracing even if the user's code handles them, each with its line."""

    @contextmanager
    def active(self, on: bool) -> Iterator[None]:
        """Send all operators to this tracer inside the block; attributes are restored afterwards.

        `on` says whether gradients are on.
        """
        outside = modes()
        set_modes(Modes(on, self))
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
            for target in targets:
                target.note_change()
            return into
        if definition.views and not (definition is take_items and len(variables) > 1):
            for variable in outputs:
                variable.share_memory(variables[0])
        if not modes().on:
            for variable in outputs:
                variable.stop_gradient = True
        return outputs[0] if len(outputs) == 1 and not definition.many_outputs else tuple(outputs) or None

    def value(self, tensor: Any) -> Variable:
        """The variable that stands for a Tensor."""
        captured = None if isinstance(tensor, Variable) else self.captured.get(id(tensor))
        variable: Any = tensor if captured is None else captured.variable
        if not isinstance(variable, Variable):
            return self._capture(tensor)
        if isinstance(variable, TracedVariable):
            variable.check_current()
        return variable

    def constant(self, array: np.ndarray, stop_gradient: bool) -> Any:
        """Return a constant value."""
        value: Any = assign(self.program.current_block().as_variable(array))
        return self.as_leaf(value, stop_gradient)

    def as_leaf(self, value: Any, stop_gradient: bool, owner: Any = None) -> Any:
        """A value that the function makes, as a leaf: it gets a gradient of its own, unless `stop_gradient`.

        `owner` is the user's object, if another one stands for the value.
        """
        value.stop_gradient = stop_gradient
        if not stop_gradient and is_float(value.dtype):
            self.leaves.append(value if owner is None else owner)
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
        block.vars[name], variable.outside = variable, True
        self.captured[id(holder)] = Captured(tensor, variable, of_gradient)
        return variable

    # Changes in place

    def like(self, value: Any, variable: Variable, casting: Literal["same_kind", "unsafe"] = "unsafe") -> Variable:
        """A value as one of the shape and type of a variable whose place it takes."""
        new = self.program.current_block().as_variable(value)
        shape = () if new is None else new.shape
        fits = len(shape) == len(variable.shape) and all(
            a == b or UNKNOWN in (a, b) for a, b in zip(shape, variable.shape, strict=True)
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
        return next(c.tensor for c in self.captured.values() if c.variable.name == variable.name)

    # Changes of Python objects

    @contextmanager
    def region(self, where: str, may_change: Iterable[Any] = ()) -> Iterator[None]:
        """A branch or the body of a loop over a Tensor is traced inside the block, which `may_change` these objects."""
        self.regions.append(Region(where, {id(thing): thing for thing in may_change}))
        try:
            yield
        finally:
            self.regions.pop()

    @contextmanager
    def control_flow(self, where: str) -> Iterator[None]:
        """Operators of control flow are appended inside the block. An error there is raised whatever the Tensor is."""
        try:
            yield
        except Exception as error:
            if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
                raise RefusedError(
                    f"a function calls itself again and again in the branch or loop over a Tensor at {where}, which is "
                    "traced whatever the Tensor is, so that tracing does not end; write it as a loop"
                ) from None
            if isinstance(error, AppError):
                note_refusal(error)
                raise
            reason = f"raised in the branch or loop over a Tensor at {where}, which is traced whatever the Tensor is"
            refused = RefusedError(f"{type(error).__name__}: {error}\n{reason}, and so cannot be handled")
            refused.__cause__ = error
            add_note(error, f"{reason}; `assert` raises an error only in calls in which its condition is false")
            raise

    def check_refusals(self, error: Exception | None = None) -> None:
        """Raise the first refusal if the user's code has handled it; `error` is what it raises now."""
        first, line = self.refusals[0] if self.refusals else (None, "")
        if first is not None and (error is None or error not in (first, first.__cause__)):
            if user_line(first.__traceback__) is not None or line in str(first):
                raise first
            raise type(first)(f"{first}\n  at {line}") from first

    def own(self, thing: Any) -> Any:
        """Note that an object was made in the branches and loops that are being traced, which may change it."""
        for region in self.regions:
            region.own[id(thing)] = thing
        return thing

    def check_change(self, owner: Any, what: str) -> None:
        """Refuse a change of an object that would happen whatever the Tensor of a branch or a loop is."""
        for region in self.regions:
            if id(owner) not in region.own:
                raise RefusedError(
                    f"{what} changes in the branch or loop over a Tensor at {region.where}, which is traced whatever "
                    "the Tensor is: it may change only Tensors, and the variables, lists and dicts of the function "
                    "that it is in. Return the new value and assign it there; or, if once is meant, change it in a "
                    "function with @opsmith.jit.not_to_static"
                )

    def with_item(self, value: Any, index: Any, item: Any) -> Variable:
        """Return a value with the indexed part replaced."""
        arrays, items = index_items(index)
        whole: Variable = put_items([self.value(value), item, *arrays], items=items)
        return whole

    # Values read by Python

    def note_numbers(self, tensor: Tensor) -> None:
        """Record that Python reads a Tensor's values: the trace is valid only for these values."""
        captured = self.captured.get(id(tensor))
        if captured is not None and any(
            captured.variable.name in op.outputs for b in self.program.blocks for op in b.ops
        ):
            raise RefusedError(
                f"{captured.variable.name} is changed by the traced function, so Python cannot read its numbers after "
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
            raise RefusedError("grad() in a branch or a loop that depends on a Tensor; call it before or after that")
        for target in targets:
            if target.stop_gradient:
                raise GradientError(f"grad of {target.name}, which has stop_gradient=True and so no gradient")
        before = len(block.ops)
        results = self._gradients(targets, sources, starts, [self.value(x) for x in blocked])
        for op in block.ops[before:]:
            op.role = FORWARD  # part of the function, not of its gradient
        return [g if g is None or create_graph else g.detach() for g in results]

    def _gradients(
        self, outputs: Sequence[Any], sources: Sequence[Any], starts: Sequence[Any], blocked: Sequence[Any] = ()
    ) -> list[Any]:
        """The gradients of outputs with respect to sources."""
        block = self.program.current_block()
        start_variables = [None if start is None else self.value(block.as_variable(start)) for start in starts]
        results: list[Any] = gradients([self.value(x) for x in outputs], sources, start_variables, blocked)
        return [None if g is None else g.here() for g in results]

    def backward(self, outputs: Sequence[Any], starts: Sequence[Any], inputs: Any = None) -> None:
        """Append the backward pass of some values, and add to the `.grad` of arguments and captured Tensors."""
        if inputs is not None:
            raise RefusedError("backward(inputs=...) in a traced function; use grad(outputs, inputs)")
        if self.program.current_block().idx:
            raise RefusedError("backward() in a branch or a loop that depends on a Tensor; call it after that")
        self.went_back = True
        block = self.program.global_block()
        arguments: list[Any] = [v for v in block.vars.values() if v.is_data and not v.stop_gradient]
        captures = [c for c in self.captured.values() if not (c.of_gradient or c.variable.stop_gradient)]
        leaves = [leaf for leaf in self.leaves if leaf.block is block]
        sources = [*arguments, *leaves, *(c.variable for c in captures)]
        if not sources:
            return
        results = self._gradients(outputs, sources, starts)
        for variable, new in zip([*arguments, *leaves], results, strict=False):
            if new is not None:
                variable.own_gradient = self._added(variable.own_gradient, new)
        for captured, new in zip(captures, results[len(arguments) + len(leaves) :], strict=True):
            if new is not None:
                self.check_end(captured.variable.name, captured.tensor)
                self.ends[id(captured.tensor)] = captured.tensor
                before = self.gradient_of(captured.tensor)
                self.note_gradient(captured.tensor)
                captured.tensor.grad = self._added(before, new)

    def _added(self, before: Any, new: Any) -> Any:
        """The sum of a gradient and a new one. Eager code adds in place, so the former is not read any more."""
        if before is None:
            return new
        total = before + new
        self.ticks += 1
        for memory in before.memories:
            memory.changed = self.ticks
        return total

    def check_end(self, name: str, tensor: Tensor) -> None:
        """Refuse to end a backward pass at a Tensor at which eager code would call hooks, or go on."""
        if tensor._node is not None:
            raise RefusedError(
                f"backward() in a traced function ends at {name}, which was computed outside, and would go on there in "
                "eager code; pass it as an argument, or call backward() outside of the function"
            )
        check_no_hooks(name, tensor)

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
        captured = self.captured.get(id(now))
        return captured.variable if captured is not None else self._capture(tensor, of_gradient=True)

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

    def check_attribute(self, layer: Any, name: str, value: Any) -> None:
        """Refuse to set an attribute of a layer to a Tensor: that would happen only while the function is traced."""
        self.check_change(layer, f"{type(layer).__name__}.{name}")
        leaves = Structure.of(value).leaves if isinstance(value, (list, tuple, Tensor, Variable)) else []
        kinds = (Parameter, ProgramParameter)  # a new one is refused when the function is traced
        to_one = any(isinstance(leaf, (Tensor, Variable)) and not isinstance(leaf, kinds) for leaf in leaves)
        if to_one or (isinstance(layer.__dict__.get(name), Tensor) and not isinstance(value, kinds)):
            what = "a Tensor" if to_one else "something else than a Tensor, which it holds,"
            raise RefusedError(
                f"{type(layer).__name__}.{name} cannot be set to {what} in a traced function, as this would happen "
                f"only while it is traced. Return the Tensor; or keep a state in a buffer, "
                f"self.register_buffer({name!r}, ...) in __init__, and change that in place: self.{name}.set_value(...)"
            )

    def refuse_parameter(self) -> NoReturn:
        """Refuse to create a parameter."""
        raise RefusedError(
            "the traced function creates a parameter, which would be a new one at every call; create layers and "
            "parameters outside of it"
        )

    def refuse_hook(self) -> NoReturn:
        """Refuse to register a hook for the gradient of a Tensor from outside."""
        raise RefusedError(
            "register_hook in a traced function would register one hook, while it is traced, and not one in each call; "
            "do it outside of the function"
        )

    def forward_of(self, layer: Any) -> Callable[..., Any]:
        """Return a layer's `forward` with converted control flow."""
        self.layers[id(layer)] = layer
        return self.converted(layer.forward)

    def hooks_of(self, layer: Any) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return the hooks before and after a layer's `forward`, with converted control flow."""
        before, after = layer._forward_pre_hooks, layer._forward_post_hooks
        return ({k: self.converted(h) for k, h in before.items()}, {k: self.converted(h) for k, h in after.items()})
