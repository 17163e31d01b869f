"""Gradient rules: functions that compute the gradients of an operator's inputs with other operators.

The parameter names of a built-in rule select what it is given: an input, an output, an attribute, or `d` + output for
the gradient of that output. `x_like` is a value with the shape and type of the input `x` whose elements are not read,
so `x` need not be saved for it. For an operator with any number of inputs, `*values`, the parameter `values` is a list,
and `values_from_1` is a list without the first input. A rule of an operator whose names are the user's is declared with
the sources of its parameters instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from app.errors import OperatorError
from app.ops.size import Shape

if TYPE_CHECKING:
    from app.ops.definition import OpDef
    from app.ops.values import Applied, Attributes, Gradient, GradientRule


class Call(Protocol):
    """A call of an operator, as seen by its gradient rules. The tape and Programs each have their own class."""

    @property
    def definition(self) -> OpDef:
        """The operator."""

    @property
    def attributes(self) -> Attributes:
        """The attributes of the call."""

    @property
    def needs(self) -> Sequence[bool]:
        """For each input, whether its gradient is needed."""

    def input(self, index: int) -> Applied: ...
    def output(self, index: int) -> Applied: ...
    def like(self, index: int) -> Applied:
        """A value with the shape and type of input `index`; its elements are arbitrary."""

    def input_shape(self, index: int) -> Shape: ...
    def output_shape(self, index: int) -> Shape: ...
    def zeros(self, index: int) -> Applied:
        """Zeros with the shape and type of output `index`, for an output without a gradient."""


Source: TypeAlias = tuple[str, Any]
"""What a parameter of a rule gets: its kind, which `_ARGUMENTS` lists, and the position or the name of the value."""

_ARGUMENTS = {
    "dout": "douts[{}]",
    "input": "call.input({})",
    "output": "call.output({})",
    "attribute": "call.attributes[{!r}]",
    "like": "call.like({})",
    "likes": "[call.like(i) for i in range(len(call.needs))]",
    "inputs": "[call.input(i) for i in range({}, len(call.needs))]",
    "needs": "call.needs",
    "douts": "douts",
    "call": "call",
}
"""The source of each kind of parameter, as an expression of the call and the gradients of its outputs."""


class Rule:
    """The function that computes the gradients of some inputs."""

    def __init__(
        self,
        definition: OpDef,
        function: GradientRule,
        targets: tuple[int, ...],
        sources: Sequence[Source] | None = None,
    ):
        self.function = function
        self.targets = targets
        if sources is None:
            sources = [_source(definition, name) for name in inspect.signature(function).parameters]
        self.sources = sources
        arguments = ", ".join([_ARGUMENTS[kind].format(key) for kind, key in self.sources])
        # compiled once, because every backward pass runs every rule
        self._run = eval(f"lambda call, douts: function({arguments})", {"function": function})

    def __call__(self, call: Call, douts: Sequence[Gradient]) -> Sequence[Gradient]:
        result = self._run(call, douts)
        return result if isinstance(result, (tuple, list)) else (result,)


def _source(definition: OpDef, parameter: str) -> Source:
    if parameter in ("needs", "douts", "call"):
        return parameter, None
    if definition.variadic:
        name, _, first = parameter.partition("_from_")
        if parameter == definition.variadic + "_like":
            return "likes", None
        if name == definition.variadic and (parameter == name or first.isdecimal()):
            return "inputs", int(first or 0)
    if parameter in definition.inputs:
        return "input", definition.inputs.index(parameter)
    if parameter in definition.outputs:
        return "output", definition.outputs.index(parameter)
    if parameter[:1] == "d" and parameter[1:] in definition.outputs:
        return "dout", definition.outputs.index(parameter[1:])
    name = parameter.removesuffix("_like")
    if name != parameter and name in definition.inputs:
        return "like", definition.inputs.index(name)
    if parameter in definition.attributes:
        return "attribute", parameter
    choices = [*definition.inputs, *definition.outputs, *("d" + o for o in definition.outputs)]
    choices += list(definition.attributes)
    raise OperatorError(
        f"{definition.label}: its gradient has a parameter {parameter!r}; expected one of {', '.join(choices)}"
    )


class Reads:
    """The inputs and outputs that the gradient rules of an operator read; only these are saved for backward."""

    __slots__ = ("inputs", "inputs_from", "outputs")

    def __init__(self, rules: Sequence[Rule], count: int = 0):
        sources = {source for rule in rules for source in rule.sources}
        self.inputs = frozenset(key for kind, key in sources if kind == "input")
        listed = [key for kind, key in sources if kind == "inputs"]
        self.inputs_from: int | None = min(listed) if listed else 0 if 0 < len(self.inputs) == count else None
        """The position from which on all inputs are read; None if only the inputs in `inputs` are."""
        self.outputs = frozenset(key for kind, key in sources if kind == "output")
