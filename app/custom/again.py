"""Second derivatives of custom operators: through the operators that their backward is made of, if it is.

A backward that is opaque, Python that works on numbers, has no derivative that anyone could know; asking for one is an
error, as the silent alternative would be a zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.custom.composed import Composition, OnValues, composition
from app.errors import OperatorError
from app.graph.autodiff import Recorded, reverse_walk
from app.graph.program import Operator
from app.ops.creation import zeros_like
from app.ops.definition import OpDef, apply
from app.ops.rules import Call
from app.ops.spec import spec_of


class ValueCall:
    """One operator of a composition on the values at hand, whatever their kind, as gradient rules see it."""

    def __init__(self, operator: Operator, values: Mapping[str, Any], active: set[str]):
        self.definition = operator.definition
        self.attributes = operator.attributes
        self.input_keys, self.output_keys = operator.inputs, operator.outputs
        self.needs = [name in active for name in operator.inputs]
        self._values = values

    def input(self, index: int) -> Any:
        name = self.input_keys[index]
        return None if name is None else self._values[name]

    like = input

    def output(self, index: int) -> Any:
        return self._values[self.output_keys[index]]

    def input_shape(self, index: int) -> tuple[int, ...]:
        value = self.input(index)
        return () if value is None else spec_of(value).shape

    def output_shape(self, index: int) -> tuple[int, ...]:
        return spec_of(self.output(index)).shape

    def zeros(self, index: int) -> Any:
        return zeros_like(self.output(index))


def derive_again(gradient: OpDef, on_values: OnValues, message: str) -> None:
    """Give an operator that runs a user's backward a derivative: that of its composition, else an error."""

    def rule(call: Call, douts: Sequence[Any], *inputs: Any) -> list[Any]:
        specs = [None if x is None or not hasattr(x, "dtype") else spec_of(x) for x in _without_contexts(inputs)]
        found = composition(gradient, on_values, specs, call.attributes)
        if found is None:
            raise OperatorError(message)
        return derivatives(found, inputs, douts, call.needs)

    gradient.optional_gradients = True
    gradient.gradient(rule, ["call", "douts", *gradient.inputs])


def _without_contexts(inputs: Sequence[Any]) -> list[Any]:
    """The inputs less what a PyLayer's forward left for its backward, which is no value of operators."""
    return [None if getattr(x, "dtype", "object") == "object" else x for x in inputs]


def derivatives(found: Composition, inputs: Sequence[Any], douts: Sequence[Any], needs: Sequence[bool]) -> list[Any]:
    """The gradients of a composition's inputs, None where there is none, from those of its outputs."""
    values = {name: x for name, x in zip(found.inputs, inputs, strict=True) if name is not None}
    active = {name for name, need in zip(found.inputs, needs, strict=True) if need and name is not None}
    calls: list[Recorded] = []
    for op in found.program.global_block().ops:
        results = apply(op.definition, [None if n is None else values[n] for n in op.inputs], op.attributes)
        values.update(zip(op.outputs, results if isinstance(results, tuple) else (results,), strict=True))
        if op.definition.differentiable and not active.isdisjoint(op.inputs):
            active.update(op.outputs)
            calls.append(ValueCall(op, values, active))
    gradients: dict[Any, Any] = {}
    for name, dout in zip(found.outputs, douts, strict=True):
        if dout is not None and name in active:
            gradients[name] = gradients[name] + dout if name in gradients else dout
    reverse_walk(reversed(calls), gradients)
    return [gradients.get(name) if need else None for name, need in zip(found.inputs, needs, strict=True)]
