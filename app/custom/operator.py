"""`CustomOperator`, which every hook makes: it runs a user's function, and its gradient runs another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from app.custom.calling import arrays_of, call_function, returned_arrays
from app.custom.elementwise import over_arrays
from app.custom.for_numba import for_numba
from app.custom.foreign import operator_of_framework
from app.custom.forms import forms_of, returning
from app.custom.on_variables import differentiate_on_variables
from app.custom.read_only import checking_indices, guarded
from app.errors import AppError, OperatorError, ShapeError
from app.functions import function_name, is_compiled, python_function
from app.ops.creation import zeros_like
from app.ops.definition import OpDef, apply
from app.ops.dtype import canonical
from app.ops.lowering import Elementwise, Returning
from app.ops.rules import Source
from app.ops.spec import UNKNOWN, Spec, broadcast, spec_of, stretched
from app.ops.values import Attributes
from app.reading import place_of


@dataclass(frozen=True)
class Origin:
    """The hook that made an operator, the user's functions under the hook's names, and the settings as plain data.

    A saved file refers to a custom operator by this.
    """

    hook: str
    functions: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


class CustomOperator(OpDef):
    """An operator that runs a user's function. Its gradient is a second CustomOperator, which runs the backward."""

    custom = True
    origin: Origin
    """How the operator was made, so that a saved file can make it again."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        kernel: Callable[..., Any],
        infer: Callable[..., Any],
        *,
        elementwise: bool = False,
        row_by_row: bool = False,
        takes: tuple[int, ...] | None = None,
        backward: Callable[..., Any] | None = None,
        like: str = "",
        **options: Any,
    ):
        super().__init__(name, kernel, infer, **options)
        self.__doc__ = function.__doc__
        self.function = function
        """The user's function."""
        self.backward_function = backward
        """The user's function for the gradient; None if there is none or if it was derived."""
        self.elementwise = elementwise
        """Whether the functions are called with single numbers, and not with arrays or Tensors."""
        self.row_by_row = row_by_row
        """Whether the user declared that each row of the results depends only on the same row of the inputs."""
        self._takes = takes
        """The inputs that the function takes; of the others only shape and type are used. None: all inputs."""
        self.surrogate = False
        """Whether the user declared that the gradient differs from the derivative on purpose."""
        self.casts: dict[str, str] = {}
        """The returned element type of each result or gradient that had to be cast to the type of the inputs."""
        self.like = like
        """The name of an operator that computes the same; checks compare with it."""
        self.on_variables: Callable[..., Any] | None = None
        """The function for Variables, in case it is written with the framework's operators."""
        self._gradient: CustomOperator | None = None
        self._derive: Callable[[Sequence[Spec]], CustomOperator] | None = None
        self._derived: dict[tuple[Spec, ...], CustomOperator] = {}
        """The derived gradients, by what they depend on of the inputs; of a function on numbers, one."""
        self.specs: Sequence[Spec] | None = None
        """The Specs of the inputs of the first call, for which `gradient_source` is; None before."""

    def differentiate_by(
        self,
        function: Callable[..., Any],
        takes: Sequence[Source],
        attributes: Sequence[str] = (),
    ) -> CustomOperator:
        """Let a user's function compute the gradients from the values of `takes`, and of `attributes` by name.

        The function becomes an operator of its own, which also gets the inputs: gradients must have their shapes, and
        are cast to their types. For an output that got no gradient, the function gets zeros.
        """
        count = len(self.inputs)
        gradient = CustomOperator(
            self.name + "_grad",
            function,
            _gradient_kernel(self, function, self._on_arrays(function, count)),
            _like_the_inputs_of(self),
            elementwise=self.elementwise,
            row_by_row=self.row_by_row,
            takes=tuple(range(count, count + len(takes))),
            inputs=[*self.inputs, *(f"value{i}" for i in range(len(takes)))],
            outputs=["d" + name for name in self.inputs],
            where=self.where,
        )
        gradient.declare_attributes({name: self.attributes[name] for name in attributes})
        differentiate_on_variables(
            gradient,
            _as_one_of_values(python_function(function), count),
            f"{self.label} cannot be differentiated twice: its backward function works on arrays; "
            "write it with the framework's operators (a PyLayer on Tensors) for second derivatives",
        )

        def rule(*values: Any) -> Any:
            settings = dict(zip(attributes, values[len(values) - len(attributes) :], strict=True))
            return apply(gradient, values[: len(values) - len(attributes)], settings)

        self.gradient(rule, [*_all_inputs(self), *takes, *_attributes(attributes)])
        self.backward_function = function
        self.gradient_operator = gradient
        return gradient

    def _on_arrays(self, function: Callable[..., Any], results: int) -> Callable[..., Any]:
        """A user's function as one that is called with read-only arrays."""
        return over_arrays(function, results) if self.elementwise else guarded(function)

    @property
    def lowering(self) -> Any:
        """How the compiled engine may use the function; None for a function on arrays that is not Numba's."""
        self.refresh()
        if self._lowering is not None:
            return self._lowering
        source = python_function(self.function)
        if not self.elementwise:
            return returning(self.function, self._takes, self.row_by_row) if is_compiled(self.function) else None
        return Elementwise(for_numba(source), self._takes) if isinstance(source, FunctionType) else None

    @lowering.setter
    def lowering(self, lowering: Any) -> None:
        self._lowering = lowering

    def lowerings_for(
        self, specs: Sequence[Spec], results: Sequence[Spec], attributes: Attributes
    ) -> Iterator[Elementwise | Returning]:
        """The function for single numbers, and plain NumPy as loops: where its source shows that it is the same.

        A Numba function checks its indices if one of its arrays may be too small for the others.
        """
        own = self.lowering  # first, as a derived gradient takes the function that is current
        if self._lowering is not None:  # a pass has chosen one, and may have removed inputs
            return
        if self.elementwise or self.effects or not isinstance(python_function(self.function), FunctionType):
            return
        forms = forms_of(self.function)
        taken = specs if self._takes is None else [specs[place] for place in self._takes]
        of_numbers = forms.on_numbers(len(taken[0].shape)) if taken else None
        if of_numbers is not None:
            yield Elementwise(of_numbers, self._takes)
        if self.row_by_row:  # an engine may call the function on any number of rows
            rows = results[0].shape[:1]
            taken, results = ([_open_rows(spec, rows) for spec in specs] for specs in (taken, results))
        loops = forms.loops(taken, results, attributes) if own is None else None
        if loops is not None:
            yield Returning(loops, self._takes, self.row_by_row)
        if own is not None and len({spec.shape for spec in taken}) > 1:
            yield returning(checking_indices(self.function), self._takes, self.row_by_row)

    def derive_when_needed(self, derive: Callable[[Sequence[Spec]], CustomOperator]) -> None:
        """Derive the gradient when it is first needed. Until then a backward can still be declared.

        `derive` gets the Specs of the inputs; what it gives is used for all inputs of the same types and ranks that
        broadcasting stretches along the same axes.
        """
        self._derive, settings, inputs = derive, list(self.attributes), len(self.inputs)

        def rule(*values: Any) -> Any:
            count = len(values) - len(settings)
            gradient = self.derived_for([] if self.elementwise else [spec_of(x) for x in values[:inputs]])
            settings_of_call = {**gradient.attributes, **dict(zip(settings, values[count:], strict=True))}
            results = apply(gradient, values[:count], settings_of_call)
            by_name = dict(zip(gradient.outputs, results if isinstance(results, tuple) else (results,), strict=True))
            return [by_name.get("d" + name) for name in self.inputs]

        douts = [("dout", place) for place in range(len(self.outputs))]
        self.gradient(rule, [*_all_inputs(self), *douts, *_attributes(settings)])

    @property
    def source(self) -> str:
        """The text of a derived function; '' for other functions."""
        return ""

    @property
    def can_derive(self) -> bool:
        """Whether a gradient can be derived, for an operator with a backward, too."""
        return self._derive is not None

    def derived_for(self, specs: Sequence[Spec]) -> CustomOperator:
        """The operator that computes the gradients of inputs like these."""
        assert self._derive is not None
        self.specs = self.specs or specs
        shapes = stretched(*(spec.shape for spec in specs))
        key = tuple(Spec(shape, spec.dtype) for shape, spec in zip(shapes, specs, strict=True))
        if key not in self._derived:
            gradient = self._derived[key] = self._derive(key)
            settings = {"inputs": tuple((spec.shape, spec.dtype) for spec in key)} if key else {}
            gradient.origin = Origin("gradient", {"operator": self}, settings)
        self._derived[key].refresh()
        return self._derived[key]

    @property
    def gradient_operator(self) -> CustomOperator | None:
        """The operator that computes the gradients, declared or derived for any inputs; None if there is none."""
        if self._gradient is None and self._derive is not None and self.elementwise:
            return self.derived_for([])
        return self._gradient

    @gradient_operator.setter
    def gradient_operator(self, gradient: CustomOperator) -> None:
        gradient.origin = Origin("gradient", {"operator": self})
        self._gradient = gradient

    @property
    def gradient_source(self) -> str:
        """The Python source of the derived gradient; '' if a backward was declared, or if there is no gradient.

        That of a function on arrays is for inputs of the ranks and types of the first call.
        """
        if self.backward_function is not None or self._derive is None:
            return ""
        if self.specs is None and not self.elementwise:
            raise OperatorError(
                f"{self.label}: its gradient is derived for the number of axes of each input, which is known after the "
                "first call: call it once, or run `opsmith derive FILE:NAME`"
            )
        return self.derived_for([] if self.specs is None else self.specs).source

    def refresh(self) -> None:
        """Make the operator again if it was made from functions that were replaced since."""


def _open_rows(spec: Spec, rows: Sequence[Any]) -> Spec:
    """The Spec of a value of any number of rows, if its first size is that of the rows."""
    return Spec((UNKNOWN, *spec.shape[1:]), spec.dtype) if spec.shape[:1] == rows != () else spec


def _all_inputs(operator: OpDef) -> list[Source]:
    return [("input", place) for place in range(len(operator.inputs))]


def _attributes(names: Sequence[str]) -> list[Source]:
    return [("attribute", name) for name in names]


def _gradient_kernel(
    operator: CustomOperator, function: Callable[..., Any], call: Callable[..., Any]
) -> Callable[..., Any]:
    """The kernel of a gradient: calls the user's function on arrays and checks what it returns."""
    count = len(operator.inputs)
    label = f"the gradient of {operator.label}"
    line = place_of(python_function(function))
    where = f" ({function_name(function)}, {line})" if line else ""

    def run(*values: Any, **settings: Any) -> Any:
        values = tuple(arrays_of(values))
        gradients = returned_arrays(
            call_function(call, label, values[count:], settings), count, label, function, optional=True
        )
        shapes = [x.shape for x in values[:count]]
        if operator.broadcasts:  # gradients of stretched inputs are summed back afterwards
            shapes = [np.broadcast_shapes(*shapes)] * count
        checked = [
            _checked_gradient(g, x, shape, name, (label, where), operator.casts)
            for g, x, shape, name in zip(gradients, values[:count], shapes, operator.inputs, strict=True)
        ]
        return checked[0] if count == 1 else tuple(checked)

    return run


def _like_the_inputs_of(operator: CustomOperator) -> Callable[..., tuple[Spec, ...]]:
    """Shapes of gradients before they are summed over broadcast axes: those of the inputs."""
    count = len(operator.inputs)

    def infer(*specs: Spec, **settings: Any) -> tuple[Spec, ...]:
        if not operator.broadcasts:
            return tuple(specs[:count])
        return tuple(Spec(broadcast(*(s.shape for s in specs[:count])), s.dtype) for s in specs[:count])

    return infer


def _as_one_of_values(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A backward function as one of the inputs and what it takes, with zeros in place of None."""

    def body(*values: Any, **settings: Any) -> Any:
        result = function(*values[count:], **settings)
        gradients = result if isinstance(result, (tuple, list)) else [result]
        return [zeros_like(x) if g is None else g for x, g in zip(values[:count], gradients, strict=True)]

    return body


def _checked_gradient(
    gradient: Any,
    x: np.ndarray,
    shape: tuple[int, ...],
    name: str,
    about: tuple[str, str],
    casts: dict[str, str],
) -> np.ndarray:
    """A gradient with the shape and the type of its input; None means zeros. `about` begins and ends an error."""
    label, where = about
    if gradient is None or x.dtype.kind != "f":
        return np.zeros(shape, x.dtype)
    if gradient.shape != shape:
        raise ShapeError(
            f"{label}: the gradient of {name} has shape {list(gradient.shape)}, expected that of {name}, {list(shape)}"
            f"{where}{_how_to_reshape(gradient.shape, shape, name)}"
        )
    if gradient.dtype != x.dtype:
        casts[f"the gradient of {name}"] = gradient.dtype.name
    return np.asarray(gradient.astype(x.dtype, copy=False))


def _how_to_reshape(actual: tuple[int, ...], expected: tuple[int, ...], name: str) -> str:
    """What gives a gradient the shape of its input, if that is known."""
    axes, pairs = len(actual) - len(expected), [*zip(actual, expected, strict=False)]
    if not axes and actual == expected[::-1]:
        return "; transpose it"
    if axes < 0 or (not axes and any(size == 1 != right for size, right in pairs)):
        return f"; it needs a number for each element of {name}: sum over fewer axes, or repeat it with np.broadcast_to"
    if axes > 0 or any(right == 1 != size for size, right in pairs):
        return f"; sum it over the axes along which {name} is repeated, as in dy.sum(axis=0)"
    return ""


def written_as(thing: Any) -> Any:
    """The Python function or the class that the user wrote for an operator or a Numba function."""
    other = operator_of_framework(thing)
    if other is not None:
        return next(iter(other.foreign.functions), other.foreign.thing)
    return python_function(thing.function if isinstance(thing, CustomOperator) else thing)


def home_of(thing: Any) -> str:
    """The name of the module that defines a function, an operator or a class."""
    other = operator_of_framework(thing)
    return str(getattr(written_as(thing), "__module__", None) or "") if other is None else str(other.foreign.home)


def derived_source(operator: CustomOperator) -> str:
    """The source of a derived gradient; '' if there is none, or not before the first call."""
    try:
        return operator.gradient_source
    except AppError:
        return ""


# Making operators again when a file is read

Maker = Callable[[Mapping[str, Any], Mapping[str, Any], str], OpDef]

MOST_AXES = 64
"""NumPy's limit."""

HOOKS: dict[str, Maker] = {}
"""For each hook the function that makes an operator from functions, settings and the place of registration."""


def makes(hook: str) -> Callable[[Maker], Maker]:
    """Declare the function that makes an operator of this hook again from a file."""

    def declare(maker: Maker) -> Maker:
        HOOKS[hook] = maker
        return maker

    return declare


@makes("gradient")
def _gradient(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    operator: CustomOperator = functions["operator"]
    if operator.gradient_operator is not None:
        return operator.gradient_operator
    kinds = settings.get("inputs", ())
    if len(kinds) != len(operator.inputs):
        raise OperatorError(f"{operator.label} has no gradient any more")
    return operator.derived_for([Spec(shape[:MOST_AXES], canonical(dtype)) for shape, dtype in kinds])
