"""What the hidden units of a network do: how often each is zero, and which are dead.

The engine counts it itself while it tests the network, so it is known of every test image and costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.ops.reduction import sum_ as total


class Activity(NamedTuple):
    """What the units of a hidden layer did over all images."""

    mean: float
    zeros: float
    """The share of their values that were zero."""
    dead: float
    """The share of units that were zero on every image."""


def counted(hidden: Any) -> list[Any]:
    """For each unit of a hidden layer, on how many images of a batch it is zero, and the sum of its values."""
    return [total((hidden == 0.0).astype("float32"), axis=0), total(hidden.astype("float32"), axis=0)]


def summed_up(counts: Sequence[np.ndarray], images: int) -> list[Activity]:
    """The activity of each layer, from what `counted` gave of it at every batch."""
    found = []
    for zero, values in zip(counts[::2], counts[1::2], strict=True):
        zeros, sums = zero.sum(axis=0, dtype=np.float64), values.sum(axis=0, dtype=np.float64)
        mean, share = sums.mean() / images, zeros.mean() / images
        found.append(Activity(float(mean), float(share), float(np.mean(zeros == images))))
    return found
