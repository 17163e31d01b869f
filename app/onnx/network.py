"""A layer, or a function, as a Program with its values: it is traced as for `app.jit.to_static`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from app.errors import ExportError
from app.jit import StaticFunction, static_layer
from app.nn import Layer
from app.static.inputs import InputSpec
from app.static.model_file import SavedModel


def network_of_layer(layer: Layer, input_spec: Sequence[Any] | None) -> tuple[SavedModel, list[str]]:
    """A layer as it is in use, not in training, and what its outputs are called."""
    with _in_use(layer):
        return network_of_function(static_layer(layer), input_spec, type(layer).__name__)


def network_of_function(
    function: Callable[..., Any], input_spec: Sequence[Any] | None, name: str = ""
) -> tuple[SavedModel, list[str]]:
    """A function of Tensors, and what its outputs are called."""
    name = name or getattr(function, "__name__", type(function).__name__)
    static = function if isinstance(function, StaticFunction) else _static(function)
    if input_spec is None and static._input_spec is None:
        raise ExportError(
            f"{name} is exported with input_spec=: an app.static.InputSpec for each argument, "
            "such as [InputSpec([None, 784], 'float32')]"
        )
    specs = None if input_spec is None else [_spec(value) for value in input_spec]
    traced = static.concrete_program_for(specs)
    outputs = [output for output in traced.outputs.names if output is not None]
    if not outputs:
        raise ExportError(f"{name} computes nothing from its arguments: no Tensor was returned that depends on them")
    values = {c.variable.name: np.asarray(c.holder.numpy()) for c in traced.captured}
    network = SavedModel(traced.program.clone(for_test=True), [v.name for v in traced.arguments], outputs, values)
    _name_inputs(network, [spec.name for spec in specs or ()])
    return network, ["output"] if len(outputs) == 1 else [f"output_{i}" for i in range(len(outputs))]


def _name_inputs(network: SavedModel, wishes: Sequence[str | None]) -> None:
    """Call inputs as their InputSpecs say."""
    block = network.program.global_block()
    for place, wish in enumerate(wishes):
        old = network.inputs[place]
        if wish is not None and not block.has_var(wish):
            block.rename_var(old, wish)
            network.inputs[place] = wish
            network.outputs = [wish if name == old else name for name in network.outputs]


def _static(function: Callable[..., Any]) -> StaticFunction:
    instance = getattr(function, "__self__", None)
    return StaticFunction(getattr(function, "__func__", function), instance=instance)


def _spec(value: Any) -> InputSpec:
    if isinstance(value, InputSpec):
        return value
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return InputSpec(value.shape, value.dtype, getattr(value, "name", None))
    raise ExportError(f"input_spec lists InputSpecs, or Tensors like what is given, found {value!r}")


@contextmanager
def _in_use(layer: Layer) -> Iterator[None]:
    """Inside the block, no layer is in training."""
    before = [(each, each.training) for each in layer.sublayers(include_self=True)]
    layer.eval()
    try:
        yield
    finally:
        for each, training in before:
            each.training = training
