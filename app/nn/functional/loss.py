"""Losses that compare numbers or probabilities, element by element; each gives a mean, a sum or all of them."""

from __future__ import annotations

from typing import Any

from app.errors import OperatorError, ShapeError
from app.ops import reduction as reductions
from app.ops.activation import softplus
from app.ops.math import square
from app.ops.shaping import cast
from app.ops.spec import UNKNOWN

__all__ = [
    "binary_cross_entropy_with_logits",
    "mse_loss",
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


def binary_cross_entropy_with_logits(
    logit: Any,
    label: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """Cross entropy of scores, whose sigmoid is the probability, and labels between 0 and 1."""
    sizes = list(zip(logit.shape, label.shape, strict=False))
    if len(logit.shape) != len(label.shape) or any(a != b and UNKNOWN not in (a, b) for a, b in sizes):
        raise ShapeError(
            f"binary_cross_entropy_with_logits: labels of shape {list(label.shape)} for an input of shape "
            f"{list(logit.shape)}"
        )
    label = cast(label, dtype=logit.dtype)
    present = softplus(-logit) if pos_weight is None else softplus(-logit) * pos_weight
    losses = label * present + (1.0 - label) * softplus(logit)
    return reduced(losses if weight is None else losses * weight, reduction)
