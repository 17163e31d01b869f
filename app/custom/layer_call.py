"""One call of a PyLayer: its arguments sorted, its forward and its backward run, and what they return checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.custom.context import PyLayerContext
from app.custom.functions import let_through
from app.errors import CustomOperatorError, ShapeError
from app.ops.broadcasting import sum_to
from app.ops.dtype import name_of
from app.ops.methods import ValueMethods
from app.reading import signature_of
from app.tensor import Tensor
from app.tensor.modes import modes, reset_modes, set_modes

if TYPE_CHECKING:
    from app.custom.pylayer import LayerDefinition


Caller = Callable[..., Any]
"""Calls a user's function, and decides how its errors are told: `let_through`, or `call_function`."""


def arguments_of(definition: LayerDefinition, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
    """The arguments of a call in the order of forward's parameters; with the defaults of others for `setup_context`."""
    if not kwargs and not definition.sets_up:
        return args
    given = args if definition.sets_up else (None, *args)
    try:
        bound = signature_of(definition.kernel).bind(*given, **kwargs)
    except TypeError as error:
        raise CustomOperatorError(f"{definition.label}: forward cannot be called so: {error}") from error
    if definition.sets_up:
        bound.apply_defaults()
    return [*bound.args[len(given) - len(args) :], *bound.kwargs.values()]


def values_among(arguments: Iterable[Any]) -> list[tuple[int, Any]]:
    """The Tensors or Variables that are arguments, or in a list that is one, each with the place of the argument."""
    found = []
    for place, argument in enumerate(arguments):
        if isinstance(argument, ValueMethods):
            found.append((place, argument))
        elif isinstance(argument, (list, tuple)):
            found += [(place, value) for value in argument if isinstance(value, ValueMethods)]
    return found


def run_forward(
    definition: LayerDefinition,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    arguments: Sequence[Any],
    inputs: Sequence[tuple[int, Tensor]],
    call: Caller = let_through,
) -> tuple[PyLayerContext, Any, list[Tensor]]:
    """Call a class's forward on Tensors; gives the context, the result, and the Tensors in the result."""
    context = PyLayerContext(definition, arguments, inputs)
    outside = set_modes(modes().unrecorded)
    try:
        if definition.sets_up:
            result = call(definition.kernel, definition, args, kwargs)
            call(definition.layer.setup_context, definition, (context, tuple(arguments), result), {})
        else:
            result = call(definition.kernel, definition, (context, *args), kwargs)
    finally:
        reset_modes(outside)
    if isinstance(result, Tensor):
        return context, result, [result]
    results = result if isinstance(result, (tuple, list)) else (result,)
    outputs = [r for r in results if isinstance(r, Tensor)]
    if definition.layer.lenient:
        context.returned(results)
    elif not outputs:
        found = ", ".join(type(r).__name__ for r in results)
        raise CustomOperatorError(f"{definition.label}: forward must return at least one Tensor, found {found}")
    return context, result, outputs


def run_backward(
    definition: LayerDefinition,
    context: PyLayerContext,
    douts: Sequence[Tensor | None],
    specs: Sequence[Any],
    sources: Sequence[Any] = (),
    call: Caller = let_through,
) -> list[Tensor | None]:
    """Call a class's backward with Tensors; gives a Tensor, or None, for each Tensor that forward got.

    `specs` are shapes and types of these, and `sources` say where they came from on the tape.
    """
    if context._among_results is not None:
        douts = context.among_results(douts)
    result = call(definition.layer.backward, definition, (context, *douts), {}, _BACKWARD)
    single = isinstance(result, Tensor) and len(context._places) == 1
    gradients = (result,) if single else for_tensors(result, context)
    checked: list[Tensor | None] = []
    for index, gradient in enumerate(gradients):
        shape, dtype = specs[index]
        right = isinstance(gradient, Tensor) and context._needs[index] and gradient._array.shape == shape
        if gradient is not None and not (right and gradient._array.dtype is dtype):
            gradient = _checked(gradient, shape, dtype, context, index, sources)
        checked.append(gradient)
    return checked


_BACKWARD = "Error message in backward of "


def for_tensors(result: Any, context: PyLayerContext) -> list[Any]:
    """The gradients of the Tensors: they may come one for each argument, None for what is no Tensor, as in PyTorch."""
    by_argument = list(result) if isinstance(result, (tuple, list)) else [result]
    gradients = _flat(by_argument)
    wanted, places = len(context._places), context._places
    if len(gradients) == wanted:
        return gradients
    if len(by_argument) >= context._argument_count:
        others = [g for place, g in enumerate(by_argument) if place not in places]
        expanded = _flat(
            [[None] * places.count(p) if by_argument[p] is None else by_argument[p] for p in _once(places)]
        )
        if all(g is None for g in others) and len(expanded) == wanted:
            return expanded
    raise CustomOperatorError(
        f"{context._label}: backward returned {_counted(len(gradients), 'gradient')}, "
        f"but forward had {_counted(wanted, 'Tensor')} as input "
        f"(an incorrect number of gradients: expected {wanted}, got {len(gradients)})"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _flat(values: Iterable[Any]) -> list[Any]:
    return [v for value in values for v in (value if isinstance(value, (list, tuple)) else (value,))]


def _once(places: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(places))


def _checked(
    gradient: Any, shape: tuple[int, ...], dtype: np.dtype, context: PyLayerContext, index: int, sources: Sequence[Any]
) -> Tensor | None:
    """A gradient of the shape and type of the Tensor that it is for; None where that wants none."""
    label, lenient = f"{context._label}: backward", context._definition.layer.lenient
    if not isinstance(gradient, Tensor):
        raise CustomOperatorError(
            f"{label} returned {type(gradient).__name__} as gradient {index}, expected a Tensor or None"
        )
    if not context._needs[index]:
        if lenient:
            return None
        raise CustomOperatorError(
            f"{label} returned a Tensor as gradient {index}, expected None, as that input has stop_gradient=True"
        )
    found = gradient._array.shape
    if found != shape and lenient and may_be_stretched(shape, found):
        gradient = sum_to(gradient, shape=shape)
    elif found != shape:
        raise ShapeError(
            f"{label} returned shape {list(found)} as gradient {index}, "
            f"but expected shape {list(shape)}, that of the input"
        )
    if gradient._array.dtype == dtype or not _wants_its_type(sources, index):
        return gradient
    return gradient.astype(name_of(dtype))


def may_be_stretched(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Whether a value of one shape broadcasts to another."""
    last = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape, last, strict=True))


def _wants_its_type(sources: Sequence[Any], index: int) -> bool:
    """Whether what made an input takes gradients of the type of what it made alone."""
    source = sources[index] if sources else None
    context = source[0].attributes.get("context") if isinstance(source, tuple) else None
    return not isinstance(context, PyLayerContext) or context._same_dtype


def like(sequence: Any, items: Iterable[Any]) -> Any:
    """Items in a list or tuple of the same kind as `sequence`, which may be a named tuple."""
    return type(sequence)(*items) if hasattr(sequence, "_fields") else type(sequence)(items)
