"""Conversion of arrays to Pillow images."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.errors import DataError

KINDS = {("u1", 1), ("u1", 2), ("u1", 3), ("u1", 4), ("f4", 1), ("i4", 1)}
"""The types and numbers of channels of arrays that Pillow has a mode for."""


def to_image(pixels: np.ndarray) -> Any:
    """Make a Pillow image from an array of (rows, columns) or (rows, columns, channels)."""
    from PIL import Image  # imported late: few programs need it

    channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    if pixels.ndim not in (2, 3) or (pixels.dtype.str[1:], channels) not in KINDS:
        raise DataError(
            f"cannot make an image of {pixels.dtype} of shape {list(pixels.shape)}: give bytes in 1 to 4 channels, or "
            "float32 or int32 in one"
        )
    return Image.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.ndim == 3 and channels == 1 else pixels))
