"""Converts a picture of a digit, of any size and colours, to the form of MNIST's images.

After the ink has been found, the steps are those of MNIST's authors: the ink is scaled to a box of 20 x 20 pixels,
keeping its aspect ratio, and placed in 28 x 28 pixels with its centre of mass in the middle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError

SIZE, BOX = 28, 20
Ink = NDArray[np.float32]
"""How much ink each pixel has, from 0 to 1."""


def prepare(picture: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Convert a picture of (rows, columns, colours) to 28 x 28 bytes, light on black."""
    return prepare_ink(find_ink(picture))


def prepare_ink(ink: Ink) -> NDArray[np.uint8]:
    """Convert ink of any size and position to 28 x 28 bytes."""
    if not (ink > _INK).any():
        raise DataError("the picture is empty: there is no ink")
    return _centred(_fitted(_cut(ink)))


def find_ink(picture: NDArray[np.float32]) -> Ink:
    """Return the distance of each pixel from the background colour, which is the most frequent colour of the border."""
    rows = picture.reshape(*picture.shape[:2], -1)
    border = np.concatenate([rows[0], rows[-1], rows[:, 0], rows[:, -1]])
    ground = np.median(border, axis=0)
    distance = np.sqrt(np.square(rows - ground).mean(axis=-1))
    highest = np.quantile(distance, 1 - min(0.005, 8 / distance.size))
    if highest < _LEAST_CONTRAST:
        raise DataError("the picture is empty: it has a single colour")
    noise = min(float(np.quantile(np.sqrt(np.square(border - ground).mean(axis=-1)), 0.9)), 0.3 * float(highest))
    return np.clip((distance - noise) / (highest - noise), 0, 1).astype(np.float32)


_LEAST_CONTRAST = 0.04


def _cut(ink: Ink) -> Ink:
    """Crop to the ink, without small specks."""
    from scipy import ndimage  # imported late: a tenth of a second

    parts, count = ndimage.label(ink > _INK, np.ones((3, 3)))
    amounts = ndimage.sum_labels(ink, parts, np.arange(1, count + 1))
    specks = 1 + np.flatnonzero(amounts < _SPECK * amounts.max())
    digit = (parts > 0) & ~np.isin(parts, specks)
    near = ndimage.binary_dilation(digit, np.ones((3, 3), bool), iterations=_margin(ink))
    ink = np.where(near, ink, 0)
    rows, columns = (np.flatnonzero((ink > _INK).any(axis=axis)) for axis in (1, 0))
    return ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


_INK, _SPECK = 0.1, 0.02
"""The threshold for ink, and the size relative to the largest part below which a part is a speck."""


def _margin(ink: Ink) -> int:
    return max(1, max(ink.shape) // 100)


def _fitted(ink: Ink) -> Ink:
    """Scale the ink so that its longer side is that of the box."""
    from PIL import Image

    scale = BOX / max(ink.shape)
    height, width = (max(1, round(side * scale)) for side in ink.shape)
    picture = Image.fromarray(ink).resize((width, height), Image.Resampling.BICUBIC)
    fitted = np.clip(np.asarray(picture, np.float32), 0, 1)
    return fitted / max(float(fitted.max()), 0.1)


def _centred(ink: Ink) -> NDArray[np.uint8]:
    """Place the box with its centre of mass at pixel 14 of each axis, counted from 0, as far as it fits."""
    out = np.zeros((SIZE, SIZE), np.float32)
    places = []
    for axis, side in enumerate(ink.shape):
        weights = ink.sum(axis=1 - axis)
        centre = float(weights @ np.arange(side) / weights.sum())
        places.append(int(np.clip(round(SIZE / 2 - centre), 0, SIZE - side)))
    top, left = places
    out[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    return np.rint(out * 255).astype(np.uint8)
