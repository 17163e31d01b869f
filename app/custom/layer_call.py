"""One call of a PyLayer: its arguments sorted, its forward and its backward run, and what they return checked."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from app.custom.context import Input, PyLayerContext
from app.custom.functions import call_function
from app.errors import OperatorError, ShapeError
from app.ops.definition import OpDef
from app.ops.methods import ValueMethods
from app.tensor import Tensor, no_grad


def arguments_of(definition: OpDef, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments of a call in the order of forward's parameters."""
    if not kwargs:
        return list(args)
    try:
        bound = inspect.signature(definition.kernel).bind(None, *args, **kwargs)
    except TypeError as error:
        raise OperatorError(f"{definition.label}: forward cannot be called so: {error}") from error
    return [*bound.args[1:], *bound.kwargs.values()]


def values_among(arguments: Iterable[Any]) -> list[tuple[int, Any]]:
    """The Tensors or Variables that are arguments, or in a list that is one, each with the place of the argument."""
    return [
        (place, value)
        for place, argument in enumerate(arguments)
        for value in (argument if isinstance(argument, (list, tuple)) else [argument])
        if isinstance(value, ValueMethods)
    ]


def run_forward(
    definition: OpDef, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[PyLayerContext, Any, list[Tensor]]:
    """Call a class's forward on Tensors; gives the context, the result, and the Tensors in the result."""
    arguments = arguments_of(definition, args, kwargs)
    context = PyLayerContext(definition.label, arguments, values_among(arguments))
    with no_grad():
        result = call_function(definition.kernel, definition.label, [context, *args], kwargs)
    results = result if isinstance(result, (tuple, list)) else (result,)
    if any(r is None for r in results):
        raise OperatorError(f"{definition.label}: forward returned None, which cannot be one of its results")
    outputs = [r for r in results if isinstance(r, Tensor)]
    if not outputs:
        found = ", ".join(type(r).__name__ for r in results)
        raise OperatorError(f"{definition.label}: forward must return at least one Tensor, found {found}")
    return context, result, outputs


def run_backward(layer: Any, context: PyLayerContext, douts: Sequence[Any]) -> list[Tensor | None]:
    """Call a class's backward with Tensors; gives a Tensor, or None, for each Tensor that forward got."""
    given = [d if d is None or isinstance(d, Tensor) else Tensor(np.asarray(d)) for d in douts]
    result = call_function(layer.backward, context._label, [context, *given], {})
    gradients = _for_tensors(list(result) if isinstance(result, (tuple, list)) else [result], context)
    return [
        _checked(gradient, source, f"{context._label}: backward", index, layer.lenient)
        for index, (gradient, source) in enumerate(zip(gradients, context._inputs, strict=True))
    ]


def _for_tensors(gradients: list[Any], context: PyLayerContext) -> list[Any]:
    """The gradients of the Tensors: PyTorch's listings return one for each argument, None for what is no Tensor."""
    wanted = len(context._inputs)
    places = [source.place for source in context._inputs]
    if len(gradients) != wanted and len(gradients) >= context._argument_count:
        others = [g for place, g in enumerate(gradients) if place not in places]
        if all(g is None for g in others) and len(gradients) - len(others) == wanted:
            return [gradients[place] for place in places]
    if len(gradients) != wanted:
        raise OperatorError(
            f"{context._label}: backward returned {len(gradients)} gradients, but forward had {wanted} Tensors as input"
        )
    return gradients


def _checked(gradient: Any, source: Input, label: str, index: int, lenient: bool) -> Tensor | None:
    """A gradient of the shape and type of the Tensor that it is for; None where that wants none."""
    if gradient is not None and not isinstance(gradient, Tensor):
        raise OperatorError(
            f"{label} returned {type(gradient).__name__} as gradient {index}, expected a Tensor or None"
        )
    if (gradient is None) == source.needed and not lenient:
        found = "None" if gradient is None else "a Tensor"
        raise OperatorError(
            f"{label} returned {found} as gradient {index}, expected {'a Tensor' if source.needed else 'None'}, "
            f"as that input has stop_gradient={not source.needed}"
        )
    if gradient is None or not source.needed:
        return None
    if tuple(gradient.shape) != source.spec.shape:
        raise ShapeError(
            f"{label} returned shape {list(gradient.shape)} as gradient {index}, "
            f"expected that of the input, {list(source.spec.shape)}"
        )
    return gradient if gradient.dtype == source.spec.dtype else gradient.astype(source.spec.dtype)


def like(sequence: Any, items: Iterable[Any]) -> Any:
    """Items in a list or tuple of the same kind as `sequence`, which may be a named tuple."""
    return type(sequence)(*items) if hasattr(sequence, "_fields") else type(sequence)(items)
