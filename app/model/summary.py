"""A table of a network's layers: input and output shapes, and numbers of parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.errors import AppError
from app.nn.layer import Layer
from app.nn.layers.containers import LayerDict, LayerList, Sequential
from app.tensor import Tensor, no_grad, to_tensor

MEGABYTE = 1024.0**2
BYTES = 4  # of an element, at the default type


@dataclass
class _Row:
    name: str
    inside: str
    outside: str
    outputs: int
    parameters: int


def summary(net: Layer, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Print a table of the layers for an input of the given size. Returns the numbers of parameters."""
    values = _inputs(input_size, dtypes) if input is None else input if isinstance(input, (list, tuple)) else [input]
    rows = _rows(net, list(values))
    parameters = net.parameters()
    total = sum(math.prod(p.shape) for p in parameters)
    trainable = sum(math.prod(p.shape) for p in parameters if not p.stop_gradient)
    entered = sum(math.prod(value.shape) for value in values)
    print(_table(rows, entered, total, trainable))
    return {"total_params": total, "trainable_params": trainable}


def _inputs(input_size: Any, dtypes: Any) -> list[Tensor]:
    if input_size is None:
        raise AppError("summary takes input_size=, a shape, or input=, a value")
    listed = isinstance(input_size, list) or (
        isinstance(input_size, tuple) and bool(input_size) and not isinstance(input_size[0], (int, type(None)))
    )
    if listed and all(isinstance(size, (int, type(None))) for size in input_size):
        listed = False
    given = list(input_size) if listed else [input_size]
    kinds = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes] * len(given)
    return [to_tensor(np.ones(_sizes(one), dtype or "float32")) for one, dtype in zip(given, kinds, strict=True)]


def _sizes(shape: Any) -> list[int]:
    sizes: Sequence[Any] = getattr(shape, "shape", shape)
    sizes = [sizes] if isinstance(sizes, int) else sizes
    return [1 if size is None or size < 0 else int(size) for size in sizes]


def _rows(net: Layer, values: list[Any]) -> list[_Row]:
    """The shapes that each layer saw in one call of the network, in evaluation mode."""
    rows: list[_Row] = []

    def look(layer: Layer, inputs: tuple[Any, ...], output: Any) -> None:
        name, _, number = layer.full_name().rpartition("_")
        label = f"{type(layer).__name__}-{int(number) + 1}" if number.isdigit() else f"{type(layer).__name__}-{name}"
        own = sum(math.prod(p.shape) for p in layer.parameters(include_sublayers=False))
        outputs = [value for value in _flat(output) if hasattr(value, "shape")]
        shapes = [list(value.shape) for value in outputs]
        inside = [list(value.shape) for value in inputs if hasattr(value, "shape")]
        size = sum(math.prod(shape) for shape in shapes)
        rows.append(_Row(label, str(inside), str(shapes[0] if len(shapes) == 1 else shapes), size, own))

    inner = [layer for layer in net.sublayers() if not isinstance(layer, (Sequential, LayerList, LayerDict))]
    hooks = [layer.register_forward_post_hook(look) for layer in inner or [net]]
    modes = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    try:
        net.eval()
        with no_grad():
            net(*values)
    finally:
        for hook in hooks:
            hook.remove()
        for layer, training in modes:
            layer.training = training
    return rows


def _flat(value: Any) -> list[Any]:
    return [part for item in value for part in _flat(item)] if isinstance(value, (list, tuple)) else [value]


def _table(rows: list[_Row], entered: int, total: int, trainable: int) -> str:
    cells = [(row.name, row.inside, row.outside, f"{row.parameters:,}") for row in rows]
    head = ("Layer (type)", "Input Shape", "Output Shape", "Param #")
    widths = [max(least, *(len(row[i]) + 3 for row in [head, *cells])) for i, least in enumerate((15, 20, 20, 15))]
    lines = [" ".join(f"{cell:^{width}}" for cell, width in zip(row, widths, strict=True)) for row in [head, *cells]]
    thin, thick = "-" * (sum(widths) + 5), "=" * (sum(widths) + 5)
    passed = 2 * sum(row.outputs for row in rows)
    sizes = [entered * BYTES / MEGABYTE, passed * BYTES / MEGABYTE, total * BYTES / MEGABYTE]
    figures = [
        f"Total params: {total:,}",
        f"Trainable params: {trainable:,}",
        f"Non-trainable params: {total - trainable:,}",
        thin,
        f"Input size (MB): {sizes[0]:.2f}",
        f"Forward/backward pass size (MB): {sizes[1]:.2f}",
        f"Params size (MB): {sizes[2]:.2f}",
        f"Estimated Total Size (MB): {sum(sizes):.2f}",
        thin,
    ]
    return "\n".join([thin, lines[0], thick, *lines[1:], thick, *figures, ""])
