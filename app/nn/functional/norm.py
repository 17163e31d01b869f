"""Normalisation to mean 0 and variance 1 over a batch."""

from __future__ import annotations

import math
from typing import Any

from app.errors import ShapeError
from app.ops.definition import apply
from app.ops.math import rsqrt, square
from app.ops.reduction import mean
from app.ops.shaping import reshape
from app.ops.spec import UNKNOWN, differ
from app.ops.training_mode import in_training, running_mean

__all__ = ["batch_norm"]


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
    unbiased: bool = False,
) -> Any:
    """Normalise each channel with the mean and variance of the batch in training, else with the running ones.

    In training the running mean and variance, unless they are None, move towards those of the batch; with `unbiased`,
    towards the unbiased variance.
    """
    rank = len(x.shape)
    channel = rank - 1 if data_format.endswith("C") and rank > 2 else 1
    if rank < 2 or (running_mean is not None and x.shape[channel] != running_mean.shape[0]):
        channels = "one axis for channels" if running_mean is None else f"{running_mean.shape[0]} channels"
        wish = ", where the number of channels is open: give it" if rank > 1 and x.shape[channel] == UNKNOWN else ""
        raise ShapeError(f"batch_norm: expected {channels}, found an input of shape {list(x.shape)}{wish}")
    for name, values in {"running_var": running_var, "weight": weight, "bias": bias}.items():
        if values is not None and differ(values.shape, [x.shape[channel]]):
            raise ShapeError(f"batch_norm: {name} has shape {list(values.shape)}, expected [{x.shape[channel]}]")
    shape = [-1 if axis == channel else 1 for axis in range(rank)]
    center, spread = running_mean, running_var
    if training if use_global_stats is None else not use_global_stats:
        axes = [axis for axis in range(rank) if axis != channel]
        batch_mean = mean(x, axis=axes)
        batch_var = mean(square(x - reshape(batch_mean, shape)), axis=axes)
        center, spread = batch_mean, batch_var
        if running_mean is not None:
            center, spread = in_training(batch_mean, running_mean), in_training(batch_var, running_var)
            count = math.prod(x.shape[axis] for axis in axes) if unbiased else 0
            _follow(running_mean, batch_mean, momentum)
            _follow(running_var, batch_var * (count / max(count - 1, 1)) if unbiased else batch_var, momentum)
    return _scaled(x, center, spread, shape, epsilon, weight, bias)


def _follow(running: Any, value: Any, momentum: float) -> None:
    attributes = {**running_mean.attributes, "momentum": float(momentum)}
    apply(running_mean, [running, value.detach()], attributes, into=[running])


def _scaled(x: Any, center: Any, spread: Any, shape: list[int], epsilon: float, weight: Any, bias: Any) -> Any:
    out = (x - reshape(center, shape)) * reshape(rsqrt(spread + epsilon), shape)
    out = out if weight is None else out * reshape(weight, shape)
    return out if bias is None else out + reshape(bias, shape)
