"""The losses of `torch.nn.functional`. `size_average` and `reduce`, which `reduction` replaced, are refused."""

from __future__ import annotations

import math
from typing import Any

import app
from app.compat.table import table
from app.compat.torch._grad_fn import named_by
from app.errors import DtypeError, OperatorError
from app.nn import functional
from app.nn.functional.loss import reduced

_GRAD_FN = {
    "binary_cross_entropy": "BinaryCrossEntropy",
    "binary_cross_entropy_with_logits": "BinaryCrossEntropyWithLogits",
    "huber_loss": "HuberLoss",
    "l1_loss": "Mean",
    "mse_loss": "MseLoss",
    "nll_loss": "NllLoss",
    "smooth_l1_loss": "SmoothL1Loss",
}
"""The operator that each loss is in PyTorch."""

_ROWS = table(
    functional,
    """
    binary_cross_entropy = binary_cross_entropy(input, target:label, weight, size_average!, reduce!, reduction)
    binary_cross_entropy_with_logits = binary_cross_entropy_with_logits(input:logit, target:label, weight, \
        size_average!, reduce!, reduction, pos_weight)
    huber_loss = smooth_l1_loss(input, target:label, reduction, delta)
    kl_div = kl_div(input, target:label, size_average!, reduce!, reduction, log_target)
    l1_loss = l1_loss(input, target:label, size_average!, reduce!, reduction)
    mse_loss = mse_loss(input, target:label, size_average!, reduce!, reduction)
    nll_loss = nll_loss(input, target:label, weight, size_average!, ignore_index, reduce!, reduction)
    smooth_l1_loss = smooth_l1_loss(input, target:label, size_average!, reduce!, reduction, beta:delta, :is_huber=False)
    """,
)
LOSSES = {name: named_by(kind)(_ROWS[name]) for name, kind in _GRAD_FN.items()}
"""The losses that differ in the names of parameters only."""


@named_by("Mean")
def kl_div(
    input: Any,
    target: Any,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """The Kullback-Leibler divergence of `exp(input)` from the probabilities `target`; NaN where one is negative."""
    if not log_target:
        target = app.where(target < 0, math.nan, target)
    return _ROWS["kl_div"](input, target, size_average, reduce, reduction, log_target)


LOSSES["kl_div"] = kl_div


@named_by("NllLoss")
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Cross entropy of scores with classes, or with the probabilities of classes."""
    if (size_average, reduce) != (None, None):
        raise OperatorError("cross_entropy: size_average and reduce are not supported; use reduction='mean' or 'sum'")
    if not 0 <= label_smoothing <= 1:
        raise OperatorError(f"cross_entropy: label_smoothing is between 0 and 1, found {label_smoothing}")
    axis = min(1, input.ndim - 1)
    if target.dtype.is_floating_point:
        if tuple(target.shape) != tuple(input.shape):
            raise DtypeError(f"cross_entropy: classes are whole numbers, found {target.dtype}; use target.long()")
        if ignore_index >= 0:
            raise OperatorError("cross_entropy: probabilities of classes have no ignore_index; leave it out")
        shares = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
        return reduced(_of_shares(input, shares, weight, axis), reduction)
    losses = functional.cross_entropy(input, target, weight, ignore_index, reduction, axis=axis)
    if not label_smoothing:
        return losses
    kept = target != ignore_index
    uniform = app.where(kept, _of_shares(input, 1 / input.shape[axis], weight, axis), 0.0)
    if reduction == "mean":
        counts = kept if weight is None else app.where(kept, weight[app.where(kept, target, 0)], 0.0)
        uniform = uniform.sum() / counts.sum()
    elif reduction == "sum":
        uniform = uniform.sum()
    return losses * (1 - label_smoothing) + uniform * label_smoothing


def _of_shares(input: Any, shares: Any, weight: Any, axis: int) -> Any:
    """The cross entropy of scores with a share of each class, which counts as much as its weight."""
    weighted = functional.log_softmax(input, axis) * shares
    if weight is not None:
        weighted = weighted * app.reshape(weight, [-1 if a == axis else 1 for a in range(input.ndim)])
    return -weighted.sum(axis)
