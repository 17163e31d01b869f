"""What an operator is made of, for those that write it down elsewhere: its functions, settings, inputs and outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType
from typing import Any

from app.custom.foreign import operator_of_framework
from app.custom.on_numbers import written_on_numbers
from app.custom.operator import CustomOperator
from app.derivative.arrays import derive, written_out
from app.derivative.making import derived_gradient
from app.derivative.scope import UnderivableError
from app.errors import AppError, ExportError, GradientError
from app.functions import is_compiled, python_function
from app.ops.dtype import canonical, is_float
from app.ops.rules import Source
from app.ops.spec import Spec
from app.reading import parameters_of


@dataclass(frozen=True)
class Part:
    """One function of an operator: forward, its gradient, or the gradient of that."""

    function: FunctionType
    takes: tuple[str, ...]
    """The parameters that get arrays or numbers, in the order of `sources`."""
    sources: tuple[Source, ...]
    """What each of these gets: ("input", 0), ("output", 0), or ("dout", 0) for the gradient of an output.

    For the second derivative, "input" counts the parameters of the gradient, and "dout" its results.
    """
    gives: tuple[str, ...]
    settings: tuple[str, ...]
    """The settings that the function has as parameters."""
    options: Mapping[str, Any] | None = None
    """The options that Numba compiles it with; None for a function that it does not compile."""
    derived: bool = False
    """Whether the source was derived, and not written by the user."""

    @property
    def parameters(self) -> list[str]:
        """The parameters in the order in which files declare them."""
        return [*self.takes, *self.settings]


@dataclass(frozen=True)
class Description:
    """An operator that can leave."""

    name: str
    doc: str
    where: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: dict[str, Any]
    """The settings with their defaults."""
    elementwise: bool
    """Whether the functions are of single numbers. Those of an operator on arrays may have become so."""
    row_by_row: bool
    surrogate: bool
    forward: Part
    gradient: Part
    second: Part | None
    """None if it cannot be derived; a note says why."""
    specs: tuple[Spec, ...] = ()
    """Of an operator on arrays, inputs of the ranks and types that it is exported for."""
    floats: tuple[bool, ...] = ()
    """For each input whether it has a gradient."""
    notes: tuple[str, ...] = ()
    """What does not leave, in sentences."""

    @property
    def parts(self) -> list[Part]:
        return [self.forward, self.gradient, *([] if self.second is None else [self.second])]

    @cached_property
    def title(self) -> str:
        """The name as that of a function: the operator of py_func is called after its function."""
        return title_of(self.name)


def title_of(name: str) -> str:
    return name.removeprefix("py_func.").removesuffix("_forward")


def describe(operator: Any, specs: Sequence[Spec] = ()) -> Description:
    """Describe an operator; an ExportError says why it cannot leave.

    `specs` are those of inputs of an operator on arrays, whose gradient is derived for their ranks and types.
    """
    op = _custom(operator)
    for name, value in op.attributes.items():
        if value is inspect.Parameter.empty:
            raise ExportError(f"{op.label}: its setting {name} has no default; give it one for the export")
        if type(value) not in (bool, int, float, str):
            raise ExportError(
                f"{op.label}: its setting {name} is {value!r}; settings that leave are numbers, truth values and text"
            )
    if op.effects:
        raise ExportError(f"{op.label} has no output, and is called for what else it does: that stays here")
    if not title_of(op.name).isidentifier():
        raise ExportError(f"{op.label}: {op.name!r} is no name for a function: give custom_op another name=")
    if title_of(op.name).startswith("test"):
        raise ExportError(f"{op.label}: pytest would take it, and its file, for a test: give custom_op another name=")
    return _on_numbers(op) or describe_on_arrays(op, specs)


def _custom(operator: Any) -> CustomOperator:
    other = operator_of_framework(operator)
    if other is not None:
        raise ExportError(f"{other.foreign.name} is a {other.foreign.kind} already: use it as it is")
    if not isinstance(operator, CustomOperator) or operator.origin.hook not in ("custom_op", "py_func"):
        kind = type(operator).__name__ if not isinstance(operator, type) else operator.__name__
        raise ExportError(
            f"{getattr(operator, '__name__', operator)!r} ({kind}) cannot leave: what is exported is an operator of "
            "custom_op or py_func, whose functions work on numbers or arrays"
        )
    return operator


def _described(operator: CustomOperator, forward: Part, **more: Any) -> Description:
    return Description(
        operator.name,
        inspect.cleandoc(operator.__doc__ or "").partition("\n\n")[0],
        operator.where,
        tuple(operator.inputs),
        tuple(operator.outputs),
        dict(operator.attributes),
        row_by_row=operator.row_by_row,
        surrogate=operator.surrogate,
        forward=forward,
        **more,
    )


def _part(function: Any, takes: Sequence[str], sources: Sequence[Source], gives: Sequence[str], settings: Any) -> Part:
    """A user's function with what its parameters get."""
    source = python_function(function)
    options = dict(function.targetoptions) if is_compiled(function) else None
    own = parameters_of(source)
    return Part(source, tuple(takes), tuple(sources), tuple(gives), tuple(s for s in settings if s in own), options)


def _written(operator: CustomOperator) -> tuple[list[str], list[Source], list[str]]:
    """The parameters of a backward that the user wrote, what they get, and the names of its results."""
    sources = operator.rules[0].sources[len(operator.inputs) :]
    takes = [source for source in sources if source[0] != "attribute"]
    own = [p for p in parameters_of(python_function(operator.backward_function)) if p not in operator.attributes]
    return own[: len(takes)], takes, ["d" + name for name in operator.inputs]


def _inputs(names: Sequence[str]) -> list[Source]:
    return [("input", place) for place in range(len(names))]


def _douts(names: Sequence[str]) -> list[Source]:
    return [("dout", place) for place in range(len(names))]


# Functions of single numbers


def _on_numbers(operator: CustomOperator) -> Description | None:
    """The description of an operator whose functions are of single numbers, or can be written so; else None."""
    functions: list[Any] = []
    for function in (operator.function, operator.backward_function):
        if function is not None and not operator.elementwise:
            function, _ = written_on_numbers(function)
            if function is None:
                return None
        functions.append(function)
    function, backward = functions
    if not isinstance(python_function(function), FunctionType):
        raise ExportError(f"{operator.label}: its function is a {type(function).__name__}, which has no source")
    forward = _part(function, operator.inputs, _inputs(operator.inputs), operator.outputs, operator.attributes)
    if backward is not None:
        gradient = _part(backward, *_written(operator), operator.attributes)
    else:
        gradient = _gradient_of(forward, operator)
    notes: list[str] = []
    second = _second_of(gradient, lambda: derived_gradient(gradient.function, gradient.takes, gradient.gives), notes)
    return _described(
        operator, forward, elementwise=True, gradient=gradient, second=second, notes=tuple(notes),
        floats=(True,) * len(operator.inputs),
    )  # fmt: skip


def _gradient_of(forward: Part, operator: CustomOperator) -> Part:
    try:
        function = derived_gradient(forward.function, forward.takes, ["d" + name for name in operator.outputs])
    except GradientError as error:
        raise _without_gradient(operator, error) from error
    takes = list(parameters_of(function))[: len(operator.inputs) + len(operator.outputs)]
    sources = [*_inputs(operator.inputs), *_douts(operator.outputs)]
    part = _part(function, takes, sources, ["d" + name for name in operator.inputs], operator.attributes)
    return replace(part, derived=True)


def _without_gradient(operator: CustomOperator, why: object) -> ExportError:
    return ExportError(f"{operator.label} has no gradient, and is exported with one: {why}")


def _second_of(first: Part, derive_again: Callable[[], FunctionType], notes: list[str]) -> Part | None:
    """The gradient of a gradient: it takes what that takes, and the gradients of what it gives."""
    try:
        function = derive_again()
    except AppError as error:
        notes.append(f"It has no second derivative: {error}")
        return None
    takes = list(parameters_of(function))[: len(first.takes) + len(first.gives)]
    sources = [*_inputs(first.takes), *_douts(first.gives)]
    part = _part(function, takes, sources, [f"d{name}" for name in first.takes], first.settings)
    return replace(part, derived=True, options=first.options)


# Functions on arrays


def describe_on_arrays(operator: CustomOperator, specs: Sequence[Spec]) -> Description:
    specs = tuple(specs or operator.specs or ())
    if len(specs) != len(operator.inputs):
        raise ExportError(
            f"{operator.label} works on arrays, and is exported for inputs with a known number of axes: call it once "
            f"before, or give an example of each of its {len(operator.inputs)} inputs"
        )
    floats = tuple(is_float(spec.dtype) for spec in specs)
    forward = _part(operator.function, operator.inputs, _inputs(operator.inputs), operator.outputs, operator.attributes)
    if operator.backward_function is not None:
        gradient = _part(operator.backward_function, *_written(operator), operator.attributes)
    elif operator.can_derive:
        gradient = _derived_on_arrays(operator, specs)
    else:
        raise _without_gradient(operator, "it was declared without one")
    notes: list[str] = []
    second = _second_of(gradient, lambda: _derived_again(operator, gradient, specs), notes)
    if second is not None:
        taken = zip(gradient.takes, _specs_of(operator, gradient, specs), strict=True)
        second = replace(second, gives=tuple(f"d{name}" for name, spec in taken if is_float(spec.dtype)))
    return _described(
        operator, forward, elementwise=False, gradient=gradient, second=second, specs=specs, floats=floats,
        notes=tuple(notes),
    )  # fmt: skip


def _derived_on_arrays(operator: CustomOperator, specs: Sequence[Spec]) -> Part:
    try:
        derived = operator.derived_for(specs)
    except GradientError as error:
        raise _without_gradient(operator, error) from error
    sources = [*_inputs(operator.inputs), *_douts(operator.outputs)]
    part = _part(derived.function, list(derived.inputs), sources, derived.outputs, operator.attributes)
    return replace(part, derived=True)


def _derived_again(operator: CustomOperator, gradient: Part, specs: Sequence[Spec]) -> FunctionType:
    by_name = dict(zip(gradient.takes, _specs_of(operator, gradient, specs), strict=True))
    examples = [by_name.get(p, operator.attributes.get(p, 1.0)) for p in parameters_of(gradient.function)]
    written = operator.backward_function if not gradient.derived else gradient.function
    return derive(written, *examples).function


def compiled(operator: CustomOperator, description: Description) -> Description:
    """The description with functions that Numba compiles: those in plain NumPy are written out as loops."""

    def compiled_part(part: Part) -> Part:
        if part.options is not None:
            return part
        function = part.function if part.derived else _written_out(operator, part, description.specs)
        return replace(part, function=function, options={"error_model": "numpy"})

    forward, gradient = compiled_part(description.forward), compiled_part(description.gradient)
    second = description.second and compiled_part(description.second)
    return replace(description, forward=forward, gradient=gradient, second=second)


def _written_out(operator: CustomOperator, part: Part, specs: Sequence[Spec]) -> FunctionType:
    by_name = dict(zip(part.takes, _specs_of(operator, part, specs), strict=True))
    examples = [by_name.get(p, operator.attributes.get(p, 1.0)) for p in parameters_of(part.function)]
    try:
        return written_out(part.function, *examples)
    except UnderivableError as error:
        raise ExportError(
            f"{operator.label} is exported as compiled code, and {error}; put @njit above the function, if Numba "
            "compiles it"
        ) from None


def _specs_of(operator: CustomOperator, gradient: Part, specs: Sequence[Spec]) -> list[Spec]:
    """The Specs of what a gradient takes."""
    outputs = results_of(operator, specs)
    return [specs[place] if kind == "input" else outputs[place] for kind, place in gradient.sources]


def spec_of_example(example: Any) -> Spec:
    """The Spec of an array, or of a tensor of another framework."""
    if isinstance(example, Spec):
        return example
    return Spec(tuple(example.shape), canonical(str(example.dtype).rpartition(".")[2]))


def results_of(operator: CustomOperator, specs: Sequence[Spec]) -> list[Spec]:
    """The Specs of the outputs for inputs of some Specs."""
    inferred = operator.infer(*specs, **operator.attributes)
    return [inferred] if isinstance(inferred, Spec) else list(inferred)
