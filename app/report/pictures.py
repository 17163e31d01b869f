"""Arrays as inline images: digits in grey, weights in two colours on a transparent background."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

_STEPS = 15
"""The number of levels of each colour; few, to keep the file small."""
_BELOW, _ABOVE = (0, 114, 178), (213, 94, 0)
"""A blue and an orange that are distinguishable with colour blindness."""


def digit(pixels: np.ndarray) -> str:
    """Return an image of bytes as a data URL."""
    from PIL import Image  # imported late: only the report needs it

    return _address(Image.fromarray(pixels, "L"))


def weights(columns: np.ndarray, shape: tuple[int, int], across: int) -> tuple[str, int, int]:
    """The weights of each unit (a column) as a tile of this shape, side by side, `across` in a row.

    Returns the address of the picture, its width and its height.
    """
    from PIL import Image

    rows, width = shape
    units = columns.shape[1]
    strength = np.where(np.isfinite(columns), columns, 0)
    greatest = np.abs(strength).max(axis=0, initial=0)
    levels = np.rint(_STEPS * strength / np.where(greatest > 0, greatest, 1)).astype(np.int16) + _STEPS
    down = -(-units // across)
    tiles = np.full((down * across, rows + 1, width + 1), _STEPS, np.uint8)  # with a transparent margin
    tiles[:units, :rows, :width] = levels.T.reshape(units, rows, width)
    sheet = tiles.reshape(down, across, rows + 1, width + 1).swapaxes(1, 2).reshape(down * (rows + 1), -1)
    picture = Image.fromarray(np.ascontiguousarray(sheet[:-1, :-1]), "P")
    picture.putpalette([*_BELOW * _STEPS, *_ABOVE * (_STEPS + 1)])
    opacity = bytes(round(255 * abs(level - _STEPS) / _STEPS) for level in range(2 * _STEPS + 1))
    return _address(picture, transparency=opacity, bits=5), *picture.size


def _address(picture: Any, **options: Any) -> str:
    content = io.BytesIO()
    picture.save(content, "PNG", **options)
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()
