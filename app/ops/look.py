"""Looking over the shoulder of operators: what one got and gave, and where numbers first ceased to be finite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Look(NamedTuple):
    """One operator that ran, with the values that it read and made, each by a name."""

    operator: str
    inputs: Sequence[tuple[str, np.ndarray]]
    outputs: Sequence[tuple[str, np.ndarray]]


def is_finite(array: np.ndarray) -> bool:
    """Whether an array holds no NaN and no infinity."""
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def first_not_finite(looks: Iterable[Look]) -> Look | None:
    """The first operator that made numbers which are not finite out of such that are."""
    for look in looks:
        if all(is_finite(a) for _, a in look.inputs) and not all(is_finite(a) for _, a in look.outputs):
            return look
    return None
