"""Products, masks and one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import OperatorError
from app.ops import loss, shaping
from app.ops.drawing import dropout_mask
from app.ops.linear import matmul

__all__ = [
    "dropout",
    "flatten",
    "linear",
    "one_hot",
]

flatten = shaping.flatten


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """`x @ weight + bias`."""
    out = matmul(x, weight)
    return out if bias is None else out + bias


def dropout(
    x: Any,
    p: float = 0.5,
    axis: Any = None,
    training: bool = True,
    mode: str = "upscale_in_train",
    seed: int = 0,
) -> Any:
    """In training, set each element to 0 with probability `p`, and scale the others so that the mean stays the same.

    With the mode 'downscale_in_infer' values are scaled in evaluation instead. With a `seed`, the same elements are set
    to 0 every time.
    """
    if not 0 <= p <= 1:
        raise OperatorError(f"dropout: p is a probability, not {p}")
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise OperatorError(f"dropout: mode is 'upscale_in_train' or 'downscale_in_infer', not {mode!r}")
    if p == 0 or (not training and mode == "upscale_in_train"):
        return x
    return x * dropout_mask(x, float(p), mode, bool(training), axis, (int(seed), 0) if seed else None)


def one_hot(x: Any, num_classes: int = -1) -> Any:
    """One-hot encoding of class indices, as a new last axis; -1 classes means the largest index plus 1."""
    if num_classes == -1:
        num_classes = int(np.max(np.asarray(x), initial=-1)) + 1
    return loss.one_hot(x, int(num_classes))
