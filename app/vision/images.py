"""Conversion of arrays to Pillow images, and grids of pictures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from app.errors import DataError

MODES = {("u1", 1): "L", ("u1", 2): "LA", ("u1", 3): "RGB", ("u1", 4): "RGBA", ("f4", 1): "F", ("i4", 1): "I"}
"""Pillow's modes by the type and the number of channels of an array."""


def to_image(pixels: np.ndarray, mode: str | None = None) -> Any:
    """Make a Pillow image from an array of (rows, columns) or (rows, columns, channels)."""
    from PIL import Image  # imported late: few programs need it

    channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    found = MODES.get((pixels.dtype.str[1:], channels)) if pixels.ndim in (2, 3) else None
    if found is None:
        raise DataError(
            f"cannot make an image of {pixels.dtype} of shape {list(pixels.shape)}: give bytes in 1 to 4 channels, or "
            "float32 or int32 in one"
        )
    image = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.ndim == 3 and channels == 1 else pixels))
    return image if mode in (None, found) else image.convert(mode)


def grid(pictures: np.ndarray, columns: int = 8, padding: int = 2, pad_value: float = 0.0) -> np.ndarray:
    """Arrange pictures of (number, channels, rows, columns) as a grid of (channels, rows, columns).

    Grey ones get three channels. One picture alone is returned without a border.
    """
    if pictures.shape[1] == 1:
        pictures = np.repeat(pictures, 3, 1)
    if len(pictures) == 1:
        return pictures[0]
    across = min(columns, len(pictures))
    down = math.ceil(len(pictures) / across)
    high, wide = (size + padding for size in pictures.shape[2:])
    sheet = np.full((pictures.shape[1], down * high + padding, across * wide + padding), pad_value, pictures.dtype)
    for number, picture in enumerate(pictures):
        top, left = (place * size + padding for place, size in zip(divmod(number, across), (high, wide), strict=True))
        sheet[:, top : top + high - padding, left : left + wide - padding] = picture
    return sheet
