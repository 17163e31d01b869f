"""Losses as layers, called with the output of a network and the target."""

from __future__ import annotations

from app.nn import functional as F  # noqa: N812 - the name that it has everywhere
from app.nn.layers.of_function import layer_of

CrossEntropyLoss = layer_of(
    "CrossEntropyLoss",
    F.cross_entropy,
    (),
    weight=None,
    ignore_index=-100,
    reduction="mean",
    soft_label=False,
    axis=-1,
    use_softmax=True,
    label_smoothing=0.0,
)
NLLLoss = layer_of("NLLLoss", F.nll_loss, (), weight=None, ignore_index=-100, reduction="mean")
MSELoss = layer_of("MSELoss", F.mse_loss, (), reduction="mean")
L1Loss = layer_of("L1Loss", F.l1_loss, (), reduction="mean")
SmoothL1Loss = layer_of("SmoothL1Loss", F.smooth_l1_loss, (), reduction="mean", delta=1.0, is_huber=True)
HuberLoss = layer_of("HuberLoss", F.smooth_l1_loss, (), reduction="mean", delta=1.0, is_huber=True)
BCELoss = layer_of("BCELoss", F.binary_cross_entropy, (), weight=None, reduction="mean")
BCEWithLogitsLoss = layer_of(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, (), weight=None, reduction="mean", pos_weight=None
)
