"""Cross entropy of classes: of scores or probabilities, with labels that name classes or give each a share."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.nn.functional.loss import reduced
from app.ops import loss
from app.ops.gathering import gather
from app.ops.logic import not_equal, where
from app.ops.math import log
from app.ops.reduction import sum_
from app.ops.shaping import cast, moveaxis, reshape, reshape_like, squeeze, unsqueeze
from app.ops.softmax import log_softmax, softmax
from app.ops.spec import UNKNOWN, differ, normal_axis

__all__ = ["cross_entropy", "softmax_with_cross_entropy"]


def cross_entropy(
    input: Any,
    label: Any,
    weight: Any = None,
    ignore_index: int | None = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
) -> Any:
    """Cross entropy between labels and scores, or probabilities with `use_softmax=False`, along the axis of classes.

    Labels are class indices or, with `soft_label`, probabilities of the classes. Labels equal to `ignore_index` count
    neither in the sum nor in the mean; `ignore_index=None` means that there are none, which is faster.
    """
    along = normal_axis(axis, len(input.shape))
    if (soft_label or label_smoothing) and ignore_index is not None and ignore_index >= 0:
        what = "soft_label" if soft_label else "label_smoothing"
        raise OperatorError(
            f"cross_entropy: with {what} every label counts, found ignore_index={ignore_index}; leave it out, and "
            "weigh the losses of reduction='none' to ignore some"
        )
    if label_smoothing:
        if along != len(input.shape) - 1:
            raise OperatorError("cross_entropy: label_smoothing needs the classes along the last axis")
        if not soft_label:
            label = _shares(label, input, along)
        label, soft_label = label * (1.0 - label_smoothing) + label_smoothing / input.shape[along], True
    if soft_label:
        return _of_shares(input, label, weight, reduction, along, use_softmax)
    return _of_classes(input, label, weight, ignore_index, reduction, along, use_softmax)


def _shares(label: Any, input: Any, axis: int) -> Any:
    """One-hot rows for labels that are classes."""
    places = label if len(label.shape) < len(input.shape) else squeeze(label, axis=axis)
    return cast(loss.one_hot(places, input.shape[axis]), dtype=input.dtype)


def _of_shares(input: Any, label: Any, weight: Any, reduction: str, axis: int, use_softmax: bool) -> Any:
    sizes = zip(label.shape[axis:], input.shape[axis:], strict=False)
    if len(label.shape) != len(input.shape) or any(a != b and UNKNOWN not in (a, b) for a, b in sizes):
        raise ShapeError(
            f"cross_entropy: soft labels of shape {list(label.shape)} for an input of shape {list(input.shape)}"
        )
    label = cast(label, dtype=input.dtype)
    logarithm = log_softmax(input, axis=axis) if use_softmax else log(input)
    losses = -sum_(label * logarithm, axis=axis, keepdim=True)
    if weight is None:
        return reduced(losses, reduction)
    counts = sum_(label * _along(weight, axis, len(input.shape)), axis=axis, keepdim=True)
    losses = losses * counts
    return sum_(losses) / sum_(counts) if reduction == "mean" else reduced(losses, reduction)


def _along(weight: Any, axis: int, rank: int) -> Any:
    return reshape(weight, [-1 if a == axis else 1 for a in range(rank)])


def _of_classes(
    input: Any, label: Any, weight: Any, ignore_index: int | None, reduction: str, axis: int, use_softmax: bool
) -> Any:
    """Each label counts as its class weighs, and ignored ones do not."""
    listed = len(label.shape) == len(input.shape)  # with an axis of size 1 in the place of the classes
    if weight is None and axis == 1 and len(input.shape) == 2 and not _may_be_ignored(label, ignore_index):
        losses = _of_places(input, label, axis, use_softmax)
        return reduced(losses if listed or reduction != "none" else squeeze(losses, axis=axis), reduction)
    places = label if listed else unsqueeze(label, axis=axis)
    is_counted = not_equal(places, ignore_index) if _may_be_ignored(places, ignore_index) else None
    places = places if is_counted is None else where(is_counted, places, 0)
    losses = _of_places(input, places, axis, use_softmax)
    losses = losses if is_counted is None else where(is_counted, losses, 0.0)
    counts = None if is_counted is None else cast(is_counted, dtype=losses.dtype)
    if weight is not None:
        chosen = reshape_like(gather(weight, reshape(places, [-1])), places)
        counts = chosen if counts is None else chosen * counts
    if counts is not None:
        losses = losses * counts
        if reduction == "mean":
            return sum_(losses) / sum_(counts)
    return reduced(losses if listed or reduction != "none" else squeeze(losses, axis=axis), reduction)


def _may_be_ignored(label: Any, ignore_index: int | None) -> bool:
    if ignore_index is None:
        return False
    numbers = getattr(label, "_array", None)  # in a Program the labels come when it runs
    return ignore_index >= 0 or numbers is None or bool(np.count_nonzero(numbers == ignore_index))


def _of_places(input: Any, places: Any, axis: int, use_softmax: bool) -> Any:
    if len(input.shape) == 2 and axis == 1 and use_softmax:
        return loss.softmax_with_cross_entropy(input, places)[0]
    if use_softmax:
        return -_picked(log_softmax(input, axis=axis), places, axis)
    return -log(_picked(input, places, axis))  # in this order, as a probability of 0 elsewhere has no gradient


def _picked(x: Any, places: Any, axis: int) -> Any:
    """The element of each line along an axis of classes that a label names."""
    if len(x.shape) == 2 and axis == 1:
        return loss.index_sample(x, places)
    expected = [1 if a == axis else size for a, size in enumerate(x.shape)]
    if differ(places.shape, expected):
        raise ShapeError(f"labels have shape {list(places.shape)}, expected {expected} for these scores")
    lines = reshape(moveaxis(x, axis, -1), [-1, x.shape[axis]])
    return reshape_like(loss.index_sample(lines, reshape(places, [-1, 1])), places)


def softmax_with_cross_entropy(
    logits: Any,
    label: Any,
    soft_label: bool = False,
    ignore_index: int = -100,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """Cross entropy of scores for each example, and where asked for the softmax."""
    ignored = None if soft_label else ignore_index
    losses = cross_entropy(logits, label, ignore_index=ignored, reduction="none", soft_label=soft_label, axis=axis)
    return (losses, softmax(logits, axis=axis)) if return_softmax else losses
