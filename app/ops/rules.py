"""Gradient rules: how the gradients of an operator's inputs are made, by functions that say what they need by name.

A rule's parameter is an input, an output, `d` + output for the gradient that arrives there, or an attribute;
`x_shape` is the shape of the input `x`, and `x_like` a value with its shape and type whose numbers are not read,
so that they need not be kept. Of an operator on any number of `values`, these are a list, and `values_from_1` is a
list of all but the first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from app.errors import OperatorError

if TYPE_CHECKING:
    from app.ops.definition import OpDef


class Call(Protocol):
    """One use of an operator, as its gradient rules see it. A tape and a Program each have their own kind."""

    @property
    def definition(self) -> OpDef:
        """What was called."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The settings of the call."""

    @property
    def needs(self) -> Sequence[bool]:
        """For each input, whether its gradient is wanted."""

    def input(self, index: int) -> Any: ...
    def output(self, index: int) -> Any: ...
    def like(self, index: int) -> Any:
        """A value with the shape and type of input `index`; its numbers may be others."""

    def input_shape(self, index: int) -> tuple[int, ...]: ...
    def output_shape(self, index: int) -> tuple[int, ...]: ...
    def zeros(self, index: int) -> Any:
        """Zeros like output `index`, for a gradient that did not arrive."""


_TAKEN = {
    "dout": "douts[{}]",
    "input": "call.input({})",
    "output": "call.output({})",
    "attribute": "call.attributes[{!r}]",
    "shape": "call.input_shape({})",
    "like": "call.like({})",
    "likes": "[call.like(i) for i in range(len(call.needs))]",
    "inputs": "[call.input(i) for i in range({}, len(call.needs))]",
    "needs": "call.needs",
    "douts": "douts",
    "call": "call",
}
"""Where a rule's parameter comes from: the call, and the gradients of its outputs."""


class Rule:
    """How the gradients of some inputs are made out of other operators."""

    def __init__(
        self,
        definition: OpDef,
        function: Callable[..., Any],
        targets: tuple[int, ...],
        parameters: Sequence[str] | None = None,
    ):
        self.function = function
        self.targets = targets
        names = inspect.signature(function).parameters if parameters is None else parameters
        self.sources = [_source(definition, name) for name in names]
        taken = ", ".join([_TAKEN[kind].format(key) for kind, key in self.sources])
        # put together once, as every backward pass runs every rule
        self._run = eval(f"lambda call, douts: function({taken})", {"function": function})

    def __call__(self, call: Call, douts: Sequence[Any]) -> Sequence[Any]:
        result = self._run(call, douts)
        return result if isinstance(result, (tuple, list)) else (result,)


def _source(definition: OpDef, parameter: str) -> tuple[str, Any]:
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
    for ending in ("shape", "like"):
        name = parameter.removesuffix("_" + ending)
        if name != parameter and name in definition.inputs:
            return ending, definition.inputs.index(name)
    if parameter in definition.attributes:
        return "attribute", parameter
    choices = [*definition.inputs, *definition.outputs, *("d" + o for o in definition.outputs)]
    choices += list(definition.attributes)
    other = "; y and dy will do for out and dout" if definition.custom and definition.outputs == ("out",) else ""
    raise OperatorError(
        f"{definition.label}: its gradient asks for {parameter!r}; it can have {', '.join(choices)}{other}"
    )


class Reads:
    """Which values the rules of an operator read: only these need to be kept until its gradient is made."""

    __slots__ = ("inputs", "inputs_from", "outputs")

    def __init__(self, rules: Sequence[Rule], count: int = 0):
        sources = {source for rule in rules for source in rule.sources}
        self.inputs = frozenset(key for kind, key in sources if kind == "input")
        listed = [key for kind, key in sources if kind == "inputs"]
        self.inputs_from: int | None = min(listed) if listed else 0 if 0 < len(self.inputs) == count else None
        """The first input from which on all are read, where they are; else those of `inputs` are."""
        self.outputs = frozenset(key for kind, key in sources if kind == "output")
