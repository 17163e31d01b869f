"""Losses that compare numbers or probabilities, element by element; each gives a mean, a sum or all of them."""

from __future__ import annotations

from typing import Any

from app.errors import OperatorError, ShapeError
from app.ops import loss
from app.ops import reduction as reductions
from app.ops.activation import softplus
from app.ops.arithmetic import maximum, minimum
from app.ops.math import abs_, square
from app.ops.shaping import cast
from app.ops.spec import UNKNOWN

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
    "square_error_cost",
]


def reduced(losses: Any, reduction: str) -> Any:
    """Reduce losses to their mean or sum, or leave them as they are."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise OperatorError(f"reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return (reductions.mean if reduction == "mean" else reductions.sum_)(losses)


def mse_loss(input: Any, label: Any, reduction: str = "mean") -> Any:
    """Squared error, (input - label) ** 2; by default its mean."""
    return reduced(square(input - label), reduction)


def square_error_cost(input: Any, label: Any) -> Any:
    """Squared error of each element: (input - label) ** 2."""
    return square(input - label)


def l1_loss(input: Any, label: Any, reduction: str = "mean") -> Any:
    """Absolute error, abs(input - label); by default its mean."""
    return reduced(abs_(input - label), reduction)


def smooth_l1_loss(
    input: Any,
    label: Any,
    reduction: str = "mean",
    delta: float = 1.0,
    is_huber: bool = True,
) -> Any:
    """Huber's loss: half the squared difference up to `delta`, then linear; divided by `delta` unless `is_huber`."""
    if delta < 0:
        raise OperatorError(f"smooth_l1_loss: the threshold is 0 or more, found {delta}")
    difference = input - label
    if not is_huber and not delta:
        return reduced(abs_(difference), reduction)
    near = maximum(minimum(difference, float(delta)), -float(delta))
    losses = near * (difference - near * 0.5)
    return reduced(losses if is_huber else losses / float(delta), reduction)


def _check_same_shape(where: str, input: Any, label: Any) -> None:
    sizes = list(zip(input.shape, label.shape, strict=False))
    if len(input.shape) != len(label.shape) or any(a != b and UNKNOWN not in (a, b) for a, b in sizes):
        raise ShapeError(f"{where}: labels of shape {list(label.shape)} for an input of shape {list(input.shape)}")


def binary_cross_entropy(input: Any, label: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """Cross entropy of probabilities and labels between 0 and 1."""
    _check_same_shape("binary_cross_entropy", input, label)
    losses = loss.binary_cross_entropy(input, cast(label, dtype=input.dtype))
    return reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(
    logit: Any,
    label: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """Cross entropy of scores, whose sigmoid is the probability, and labels between 0 and 1."""
    _check_same_shape("binary_cross_entropy_with_logits", logit, label)
    label = cast(label, dtype=logit.dtype)
    present = softplus(-logit) if pos_weight is None else softplus(-logit) * pos_weight
    losses = label * present + (1.0 - label) * softplus(logit)
    return reduced(losses if weight is None else losses * weight, reduction)
