"""What every hook makes: an operator that runs a user's function, and whose gradient runs another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from app.custom.calling import arrays_of, call_function, returned_arrays
from app.custom.composed import OnValues, derive_again
from app.custom.numba_functions import by_name, python_function
from app.custom.untouched import guarded
from app.errors import DtypeError, OperatorError, ShapeError
from app.ops.creation import zeros_like
from app.ops.definition import OpDef, apply
from app.ops.spec import Spec, broadcast


@dataclass(frozen=True)
class Origin:
    """The hook that made an operator, the user's functions by the hook's names for them, and its settings, plain data.

    A file refers to a custom operator by this.
    """

    hook: str
    functions: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


WorksOn = Literal["numbers", "arrays", "Tensors"]


class CustomOperator(OpDef):
    """An operator made of a user's function. The gradient that a backward function computes is another one."""

    custom = True
    origin: Origin
    """What it was made of, and how it can be made again."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        kernel: Callable[..., Any],
        infer: Callable[..., Any],
        *,
        works_on: WorksOn = "arrays",
        row_by_row: bool = False,
        backward: Callable[..., Any] | None = None,
        like: str = "",
        **options: Any,
    ):
        super().__init__(name, kernel, infer, **options)
        self.__doc__ = function.__doc__
        self.function = function
        """The user's function."""
        self.backward_function = backward
        """The user's function for the gradient; None where there is none, or it was derived."""
        self.works_on = works_on
        """What the functions are called with."""
        self.row_by_row = row_by_row
        """Whether each row of the results was declared to depend on the same row of the inputs alone."""
        self.surrogate = False
        """Whether the gradient was declared to be another than the derivative, on purpose."""
        self.casts: dict[str, str] = {}
        """Of results, and gradients, that came in another element type than they are handed on in, that type."""
        self.like = like
        """The name of an operator that computes the same, to check this one against."""
        self.on_values: OnValues | None = None
        """The function as one of values, which may be written with the framework's operators."""
        self._gradient: CustomOperator | None = None
        self._derive: Callable[[], CustomOperator] | None = None

    def differentiate_by(
        self,
        function: Callable[..., Any],
        takes: Sequence[str],
        *,
        keep_type: bool,
        materialize: bool,
        attributes: Sequence[str] = (),
        kernel: Callable[..., Any] | None = None,
        lowering: Any = None,
    ) -> CustomOperator:
        """Let a user's function compute the gradients, from the values named in `takes`.

        The function becomes an operator of its own. It gets the inputs too, as the gradients must have their shapes.
        `keep_type` casts gradients to the types of the inputs, where else another type is an error; `materialize`
        passes zeros, where else None, as the gradient of an output that got none.
        """
        gradient = CustomOperator(
            self.name + "_grad",
            function,
            _gradient_kernel(self, function, kernel or guarded(function), keep_type),
            _like_the_inputs_of(self),
            works_on=self.works_on,
            inputs=[*self.inputs, *(f"value{i}" for i in range(len(takes)))],
            outputs=["d" + name for name in self.inputs],
            lowering=lowering,
            where=self.where,
        )
        gradient.declare_attributes({name: self.attributes[name] for name in attributes})
        source = python_function(function)
        body = source if kernel is None else by_name(source, takes)
        gradient.on_values = OnValues(_as_one_of_values(body, len(self.inputs)))
        derive_again(
            gradient,
            gradient.on_values,
            f"{self.label} cannot be differentiated twice: its backward function works on arrays; "
            "write it with the framework's operators (a PyLayer on Tensors) for second derivatives",
        )

        def rule(*values: Any) -> Any:
            settings = dict(zip(attributes, values[len(values) - len(attributes) :], strict=True))
            return apply(gradient, values[: len(values) - len(attributes)], settings)

        self.optional_gradients = not materialize
        self.gradient(rule, [*self.inputs, *takes, *attributes])
        self.backward_function = function
        self.gradient_operator = gradient
        return gradient

    def derive_when_needed(self, derive: Callable[[], CustomOperator]) -> None:
        """Let the first who wants the gradient have its operator derived: a backward may be declared until then."""
        self._derive, settings = derive, list(self.attributes)

        def rule(*values: Any) -> Any:
            count = len(values) - len(settings)
            assert self.gradient_operator is not None
            return apply(self.gradient_operator, values[:count], dict(zip(settings, values[count:], strict=True)))

        self.gradient(rule, [*self.inputs, *("d" + name for name in self.outputs), *settings])

    @property
    def gradient_operator(self) -> CustomOperator | None:
        """The operator that computes the gradients: of the backward function, or derived; None where there is none."""
        if self._gradient is None and self._derive is not None:
            self.gradient_operator = self._derive()
        return self._gradient

    @gradient_operator.setter
    def gradient_operator(self, gradient: CustomOperator) -> None:
        gradient.origin = Origin("gradient", {"operator": self})
        self._gradient = gradient


def _gradient_kernel(
    operator: CustomOperator, function: Callable[..., Any], call: Callable[..., Any], keep_type: bool
) -> Callable[..., Any]:
    """The user's function as the kernel of a gradient: on arrays, and with what it returns checked."""
    count = len(operator.inputs)
    label = f"the gradient of {operator.label}"

    def run(*values: Any, **settings: Any) -> Any:
        values = tuple(arrays_of(values))
        result = call_function(call, label, values[count:], settings)
        gradients = returned_arrays(result, count, label, function, optional=True)
        shapes = [x.shape for x in values[:count]]
        if operator.broadcasts:  # gradients of stretched inputs are summed back afterwards
            shapes = [np.broadcast_shapes(*shapes)] * count
        checked = [
            _checked_gradient(g, x, shape, name, label, keep_type, operator.casts)
            for g, x, shape, name in zip(gradients, values[:count], shapes, operator.inputs, strict=True)
        ]
        return checked[0] if count == 1 else tuple(checked)

    return run


def _like_the_inputs_of(operator: CustomOperator) -> Callable[..., tuple[Spec, ...]]:
    """Inference for gradients, which come before the sums over axes along which an input was stretched."""
    count = len(operator.inputs)

    def infer(*specs: Spec, **settings: Any) -> tuple[Spec, ...]:
        if not operator.broadcasts:
            return tuple(specs[:count])
        return tuple(Spec(broadcast(*(s.shape for s in specs[:count])), s.dtype) for s in specs[:count])

    return infer


def _as_one_of_values(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A backward function, with zeros for gradients that it does not give, which come after so many inputs."""

    def body(*values: Any, **settings: Any) -> Any:
        result = function(*values[count:], **settings)
        gradients = result if isinstance(result, (tuple, list)) else [result]
        return [zeros_like(x) if g is None else g for x, g in zip(values[:count], gradients, strict=True)]

    return body


def _checked_gradient(
    gradient: Any, x: np.ndarray, shape: tuple[int, ...], name: str, label: str, keep_type: bool, casts: dict[str, str]
) -> np.ndarray:
    """A gradient in the shape, and of the type, of the input that it is for; None stands for zeros."""
    if gradient is None or x.dtype.kind != "f":
        return np.zeros(shape, x.dtype)
    if gradient.shape != shape:
        raise ShapeError(
            f"{label}: the gradient of {name} has shape {list(gradient.shape)}, expected that of {name}, {list(shape)}"
        )
    if gradient.dtype != x.dtype and not keep_type:
        raise DtypeError(
            f"{label}: the gradient of {name} has type {gradient.dtype}, expected that of {name}, {x.dtype}"
        )
    if gradient.dtype != x.dtype:
        casts[f"the gradient of {name}"] = gradient.dtype.name
    return np.asarray(gradient.astype(x.dtype, copy=False))


# Making operators again, out of a file

Maker = Callable[[Mapping[str, Any], Mapping[str, Any], str], OpDef]

HOOKS: dict[str, Maker] = {}
"""What makes an operator of functions, settings and the place that registered it, by the name of the hook."""


def makes(hook: str) -> Callable[[Maker], Maker]:
    """Declare the function that makes an operator of this hook again."""

    def declare(maker: Maker) -> Maker:
        HOOKS[hook] = maker
        return maker

    return declare


@makes("gradient")
def _gradient(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    operator = functions["operator"]
    if operator.gradient_operator is None:
        raise OperatorError(f"{operator.label} has no gradient any more")
    found: OpDef = operator.gradient_operator
    return found
