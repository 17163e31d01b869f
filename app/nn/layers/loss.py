"""Losses as layers, called with the output of a network and the target."""

from __future__ import annotations

from typing import Any

from app.nn import functional as F  # noqa: N812 - the name that it has everywhere
from app.nn.layers.of_function import FunctionLayer


def _loss(name: str, function: Any, **settings: Any) -> Any:
    """The layer class of a loss function."""
    described = {
        "__doc__": function.__doc__,
        "__module__": __name__,
        "function": function,
        "settings": settings,
        "shown": (),
    }
    return type(name, (FunctionLayer,), described)


CrossEntropyLoss = _loss(
    "CrossEntropyLoss",
    F.cross_entropy,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    soft_label=False,
    axis=-1,
    use_softmax=True,
    label_smoothing=0.0,
)
NLLLoss = _loss("NLLLoss", F.nll_loss, weight=None, ignore_index=-100, reduction="mean")
MSELoss = _loss("MSELoss", F.mse_loss, reduction="mean")
L1Loss = _loss("L1Loss", F.l1_loss, reduction="mean")
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss, reduction="mean", delta=1.0, is_huber=True)
HuberLoss = _loss("HuberLoss", F.smooth_l1_loss, reduction="mean", delta=1.0, is_huber=True)
BCELoss = _loss("BCELoss", F.binary_cross_entropy, weight=None, reduction="mean")
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, weight=None, reduction="mean", pos_weight=None
)
KLDivLoss = _loss("KLDivLoss", F.kl_div, reduction="mean", log_target=False)
