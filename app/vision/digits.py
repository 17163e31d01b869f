"""A picture of a digit, of any size and colours, made into what networks for MNIST are trained on.

The steps are those of MNIST's makers: the ink is fitted into a box of 20 x 20 pixels, its shape kept, and put into
28 x 28 pixels so that its centre of mass lies in the middle. Before them, what is ink has to be found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError

SIZE, BOX = 28, 20
Ink = NDArray[np.float32]
"""How much ink each pixel has, from 0 to 1."""


def prepare(picture: NDArray[np.float32]) -> NDArray[np.uint8]:
    """A picture of (rows, columns, colours) as 28 x 28 bytes, the digit light on black."""
    return prepare_ink(find_ink(picture))


def prepare_ink(ink: Ink) -> NDArray[np.uint8]:
    """Ink, wherever it lies and however large it is, as 28 x 28 bytes."""
    if not (ink > _INK).any():
        raise DataError("it shows nothing: there is no ink")
    return _centred(_fitted(_cut(ink)))


def find_ink(picture: NDArray[np.float32]) -> Ink:
    """How far each pixel is from the colour of the ground, which is that of the most of the border."""
    rows = picture.reshape(*picture.shape[:2], -1)
    border = np.concatenate([rows[0], rows[-1], rows[:, 0], rows[:, -1]])
    ground = np.median(border, axis=0)
    distance = np.sqrt(np.square(rows - ground).mean(axis=-1))
    highest = np.quantile(distance, 1 - min(0.005, 8 / distance.size))
    if highest < _LEAST_CONTRAST:
        raise DataError("it shows nothing: all of it has about one colour")
    noise = min(float(np.quantile(np.sqrt(np.square(border - ground).mean(axis=-1)), 0.9)), 0.3 * float(highest))
    return np.clip((distance - noise) / (highest - noise), 0, 1).astype(np.float32)


_LEAST_CONTRAST = 0.04


def _cut(ink: Ink) -> Ink:
    """The part that has ink, without specks that lie around."""
    from scipy import ndimage  # imported late: a tenth of a second

    parts, count = ndimage.label(ink > _INK, np.ones((3, 3)))
    amounts = ndimage.sum_labels(ink, parts, np.arange(1, count + 1))
    specks = 1 + np.flatnonzero(amounts < _SPECK * amounts.max())
    kept = (parts > 0) & ~np.isin(parts, specks)
    near = ndimage.binary_dilation(kept, np.ones((3, 3), bool), iterations=_margin(ink))
    ink = np.where(near, ink, 0)
    rows, columns = (np.flatnonzero((ink > _INK).any(axis=axis)) for axis in (1, 0))
    return ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


_INK, _SPECK = 0.1, 0.02
"""From how much on a pixel has ink, and how small a share of the largest part is none of the digit."""


def _margin(ink: Ink) -> int:
    return max(1, max(ink.shape) // 100)


def _fitted(ink: Ink) -> Ink:
    """The ink brought into the box, its longer side as long as that of the box."""
    from PIL import Image

    scale = BOX / max(ink.shape)
    height, width = (max(1, round(side * scale)) for side in ink.shape)
    picture = Image.fromarray(ink).resize((width, height), Image.Resampling.BICUBIC)
    fitted = np.clip(np.asarray(picture, np.float32), 0, 1)
    return fitted / max(float(fitted.max()), 0.1)


def _centred(ink: Ink) -> NDArray[np.uint8]:
    """The box put where its centre of mass is pixel 14 of each axis, counted from 0, as far as all stays inside."""
    out = np.zeros((SIZE, SIZE), np.float32)
    places = []
    for axis, side in enumerate(ink.shape):
        weights = ink.sum(axis=1 - axis)
        centre = float(weights @ np.arange(side) / weights.sum())
        places.append(int(np.clip(round(SIZE / 2 - centre), 0, SIZE - side)))
    top, left = places
    out[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    return np.rint(out * 255).astype(np.uint8)
