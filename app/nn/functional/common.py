"""Products, masks, lookups and distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import OperatorError, ShapeError
from app.ops import loss, shaping
from app.ops.creation import shape_of
from app.ops.drawing import dropout_mask
from app.ops.gathering import from_start, gather
from app.ops.joining import bordered
from app.ops.linear import matmul
from app.ops.logic import where
from app.ops.norms import norm
from app.ops.spec import UNKNOWN

__all__ = [
    "dropout",
    "dropout2d",
    "embedding",
    "flatten",
    "label_smooth",
    "linear",
    "normalize",
    "one_hot",
    "pad",
]

flatten = shaping.flatten


def linear(x: Any, weight: Any, bias: Any = None, name: str | None = None) -> Any:
    """`x @ weight + bias`."""
    out = matmul(x, weight)
    return out if bias is None else out + bias


def dropout(
    x: Any,
    p: float = 0.5,
    axis: Any = None,
    training: bool = True,
    inplace: bool = False,
    mode: str = "upscale_in_train",
    name: str | None = None,
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


def dropout2d(x: Any, p: float = 0.5, training: bool = True, data_format: str = "NCHW", name: str | None = None) -> Any:
    """In training, set each channel of each image to 0 with probability `p`, and scale the others up."""
    if len(x.shape) != 4 or data_format not in ("NCHW", "NHWC"):
        raise ShapeError(f"dropout2d: expected images of four axes in 'NCHW', found {list(x.shape)}, {data_format!r}")
    return dropout(x, p, [0, 1] if data_format == "NCHW" else [0, 3], training)


def embedding(
    x: Any, weight: Any, padding_idx: int | None = None, sparse: bool = False, name: str | None = None
) -> Any:
    """The rows of `weight` at the indices `x`. Rows at `padding_idx` are zeros and get no gradient."""
    rows = gather(weight, from_start(x))
    if padding_idx is None:
        return rows
    padding = padding_idx if padding_idx >= 0 else padding_idx + weight.shape[0]
    return where(shaping.unsqueeze(x != padding, axis=-1), rows, 0.0)


def one_hot(x: Any, num_classes: int = -1, name: str | None = None) -> Any:
    """One-hot encoding of class indices, as a new last axis; -1 classes means the largest index plus 1."""
    if num_classes == -1:
        num_classes = int(np.max(np.asarray(x), initial=-1)) + 1
    return loss.one_hot(x, int(num_classes))


def label_smooth(label: Any, prior_dist: Any = None, epsilon: float = 0.1, name: str | None = None) -> Any:
    """Label smoothing: (1 - epsilon) * label + epsilon * prior, with `prior_dist` or a uniform prior."""
    if prior_dist is not None:
        return label * (1.0 - epsilon) + prior_dist * epsilon
    classes = label.shape[-1]
    if classes == UNKNOWN:
        classes = shaping.cast(shape_of(label)[-1], dtype=label.dtype)
    return label * (1.0 - epsilon) + epsilon / classes


def normalize(x: Any, p: float = 2, axis: int = 1, epsilon: float = 1e-12, name: str | None = None) -> Any:
    """Divide by the p-norm along an axis."""
    along = axis if len(x.shape) > 1 else 0
    return x / norm(x, p, along, True).clip(min=epsilon)


def pad(
    x: Any,
    pad: Any,
    mode: str = "constant",
    value: float = 0.0,
    data_format: str = "NCHW",
    pad_from_left_axis: bool = True,
    name: str | None = None,
) -> Any:
    """Pad with a constant. `pad` has a pair of widths for every axis, or for the last axes, beginning with the last.

    With a `data_format` that ends with C, such as "NHWC", widths for all axes of an image leave the channels out.
    """
    if mode != "constant":
        raise OperatorError(f"pad: mode must be 'constant', found {mode!r}")
    widths = [int(n) for n in np.ravel(pad)]
    rank = len(x.shape)
    if len(widths) % 2 or len(widths) > 2 * rank:
        raise ShapeError(f"pad: expected two widths for each of at most {rank} axes, found {len(widths)} widths")
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    whole = len(pairs) == rank and pad_from_left_axis
    channels_last = (data_format or "").endswith("C") and len(pairs) == rank - 2
    last = [(0, 0)] if channels_last else []
    around = pairs if whole else [(0, 0)] * (rank - len(pairs) - len(last)) + pairs[::-1] + last
    return bordered(x, widths=around, value=value)
