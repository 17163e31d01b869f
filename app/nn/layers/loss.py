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
MSELoss = layer_of("MSELoss", F.mse_loss, (), reduction="mean")
BCEWithLogitsLoss = layer_of(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, (), weight=None, reduction="mean", pos_weight=None
)
