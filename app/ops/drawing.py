"""Random operators; the attribute `seed` selects the random stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import OperatorError
from app.ops.creation import as_declared
from app.ops.definition import operator
from app.ops.lowering import Drawing
from app.ops.random import Stream, generator
from app.ops.spec import Axis
from app.ops.values import Array, Attributes, Results


@operator(as_declared, random=True)
def uniform_random(
    *, shape: tuple[int, ...], dtype: str = "float32", min: float = -1.0, max: float = 1.0, seed: Stream | None = None
) -> Results:
    """Random numbers of the uniform distribution from `min` to `max`, which is not among them."""
    numbers = np.asarray(generator(seed).uniform(min, max, shape).astype(dtype))
    if numbers.dtype.kind != "f":
        return numbers
    low, high = numbers.dtype.type(min), numbers.dtype.type(max)
    return np.where(numbers == high, np.nextafter(high, low), numbers)  # the largest numbers round to `max`


@operator(as_declared, random=True)
def gaussian_random(
    *, shape: tuple[int, ...], dtype: str = "float32", mean: float = 0.0, std: float = 1.0, seed: Stream | None = None
) -> Results:
    """Random numbers of the normal distribution."""
    return generator(seed).normal(mean, std, shape).astype(dtype)


@operator(as_declared, random=True)
def integer_random(
    *, shape: tuple[int, ...], dtype: str = "int64", low: int = 0, high: int = 2, seed: Stream | None = None
) -> Results:
    """Random integers from `low` to `high` - 1."""
    return generator(seed).integers(low, high, shape, dtype)


def _factor_in_evaluation(attributes: Attributes) -> float | None:
    if attributes["training"]:
        return None
    return 1.0 if attributes["mode"] == "upscale_in_train" else 1.0 - float(attributes["p"])


@operator(
    lambda x, *, p=0.5, mode="upscale_in_train", training=True, axis=None, seed=None: x,
    lowering=Drawing(_factor_in_evaluation),
    random=True,
    has_training_mode=True,
)
def dropout_mask(
    x: Array,
    *,
    p: float = 0.5,
    mode: str = "upscale_in_train",
    training: bool = True,
    axis: Axis = None,
    seed: Stream | None = None,
) -> Results:
    """The factors of dropout: 0 with probability `p`, else 1 or, with mode="upscale_in_train", 1 / (1 - p)."""
    upscale = mode == "upscale_in_train"
    if not training:
        return np.full(x.shape, 1.0 if upscale else 1.0 - p, x.dtype)
    drawn_shape = x.shape if axis is None else [n if a in np.ravel(axis) % x.ndim else 1 for a, n in enumerate(x.shape)]
    mask = generator(seed).random(drawn_shape) >= p
    scale = 1.0 / (1.0 - p) if upscale and p < 1.0 else 1.0
    return np.broadcast_to(mask * x.dtype.type(scale), x.shape)


@dropout_mask.in_onnx
def _(onnx: Any, x: Any, p: float, mode: str, training: bool) -> Any:
    if training:
        raise OperatorError("it drops elements at random in training; export the network in evaluation mode")
    return onnx.filled(onnx.Shape(x), 1.0 if mode == "upscale_in_train" else 1.0 - p, x.dtype)
