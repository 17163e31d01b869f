"""The losses of `torch.nn.functional`. `size_average` and `reduce`, which `reduction` replaced, are refused."""

from __future__ import annotations

from typing import Any

from app.compat.table import table
from app.compat.torch._grad_fn import named_by
from app.errors import DtypeError, OperatorError
from app.nn import functional

_GRAD_FN = {
    "binary_cross_entropy": "BinaryCrossEntropy",
    "binary_cross_entropy_with_logits": "BinaryCrossEntropyWithLogits",
    "huber_loss": "HuberLoss",
    "kl_div": "Mean",
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
LOSSES = {name: named_by(_GRAD_FN[name])(loss) for name, loss in _ROWS.items()}
"""The losses that differ in the names of parameters only."""


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
    shares = target.dtype.is_floating_point
    if shares and tuple(target.shape) != tuple(input.shape):
        raise DtypeError(f"cross_entropy: classes are whole numbers, found {target.dtype}; use target.long()")
    axis = min(1, input.ndim - 1)
    return functional.cross_entropy(
        input, target, weight, ignore_index, reduction, shares, axis, label_smoothing=label_smoothing
    )
