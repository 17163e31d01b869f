"""Traces a layer or a function for `jit.save` and ONNX export, in evaluation or training mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from app.errors import ProgramError
from app.jit.function import StaticFunction, static_layer
from app.nn.layer import Layer
from app.static.inputs import InputSpec


def static_function(target: Any, wish: str) -> StaticFunction:
    """Return a layer with its hooks, or a function, as a StaticFunction; `wish` is the caller's name in messages."""
    if isinstance(target, Layer):
        return static_layer(target)
    if isinstance(target, StaticFunction):
        return target
    if not callable(target):
        raise ProgramError(f"{wish} takes a Layer or a function, not {target!r}")
    return StaticFunction(getattr(target, "__func__", target), instance=getattr(target, "__self__", None))


def owner_of(function: StaticFunction) -> Layer | None:
    """Return the layer that owns a method."""
    return function._instance if isinstance(function._instance, Layer) else None


def specs_of(input_spec: Sequence[Any] | None) -> list[Any] | None:
    """Return the InputSpecs of arguments, each given as an InputSpec or an example Tensor."""
    return None if input_spec is None else [_spec(value) for value in input_spec]


def _spec(example: Any) -> Any:
    if isinstance(example, InputSpec) or not (hasattr(example, "shape") and hasattr(example, "dtype")):
        return example  # a plain argument, or a nest of InputSpecs
    return InputSpec(example.shape, example.dtype, getattr(example, "name", None))


@contextmanager
def in_mode(layer: Layer | None, training: bool) -> Iterator[None]:
    """Put a layer in evaluation or training mode inside the block."""
    before = [] if layer is None else [(inner, inner.training) for inner in layer.sublayers(include_self=True)]
    for inner, _ in before:
        inner.training = training
    try:
        yield
    finally:
        for inner, was in before:
            inner.training = was
