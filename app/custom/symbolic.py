"""A PyLayer's forward and backward as functions of values that are not there yet, to learn what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from app.custom.composed import Specs, drawn
from app.custom.context import PyLayerContext
from app.custom.layer_call import arguments_of, for_tensors, values_among
from app.listed import as_list
from app.ops.creation import zeros_like
from app.ops.definition import OpDef

if TYPE_CHECKING:
    from app.custom.pylayer import LayerDefinition

Fill = Callable[[Sequence[Any]], tuple[Sequence[Any], dict[str, Any]]]
"""The arguments of an apply with these values in their places."""


class SymbolicContext(PyLayerContext):
    """A context that keeps what it is given as it is."""

    def __init__(self, definition: LayerDefinition, arguments: Sequence[Any], needs: Sequence[bool]):
        super().__init__(definition, arguments, [])
        self._places = [place for place, _ in values_among(arguments)]
        self._needs = list(needs)

    def save_for_backward(self, *tensors: Any) -> None:
        self._saved = tensors

    def saved_tensor(self) -> tuple[Any, ...]:
        return tuple(self._saved or ())

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.saved_tensor()


def forward_of(eager: LayerDefinition, fill: Fill, needs: Sequence[bool]) -> Callable[..., Any]:
    """The class's forward on values, some of which need gradients."""
    return lambda *values: _run(eager, fill, needs, values)[1]


def _run(
    eager: LayerDefinition, fill: Fill, needs: Sequence[bool], values: Sequence[Any]
) -> tuple[SymbolicContext, Any]:
    args, kwargs = fill(values)
    arguments = arguments_of(eager, args, kwargs)
    context = SymbolicContext(eager, arguments, needs)
    if not eager.sets_up:
        return context, eager.kernel(context, *args, **kwargs)
    result = eager.kernel(*args, **kwargs)
    eager.layer.setup_context(context, tuple(arguments), result)
    return context, result


def backward_of(eager: LayerDefinition, fill: Fill, needs: Sequence[bool]) -> Callable[..., Any]:
    """The class's backward on the inputs, the outputs, their gradients and a context, which is made anew."""

    def body(*given: Any) -> list[Any]:
        xs = given[: len(needs)]
        context, result = _run(eager, fill, needs, xs)
        outputs = as_list(result)
        douts: Sequence[Any] = given[-1 - len(outputs) : -1]
        if context._materialize:
            douts = [zeros_like(o) if d is None else d for o, d in zip(outputs, douts, strict=True)]
        gradients = for_tensors(eager.layer.backward(context, *douts), context)
        return [zeros_like(x) if g is None else g for x, g in zip(xs, gradients, strict=True)]

    return body


def examples_for(definition: OpDef) -> Callable[[Specs], list[Any]]:
    """What to try the backward of an operator on: the outputs, and the context, are those of its forward."""

    def examples(specs: Specs) -> list[Any]:
        some = drawn(specs)
        inputs = some[: len(definition.inputs)]
        results: Any = definition.kernel(*inputs)
        *outputs, context = results
        douts = some[len(inputs) + len(outputs) : -1]
        return [*inputs, *outputs, *douts, context]

    return examples
