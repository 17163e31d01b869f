"""The random numbers of samplers."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ops.random import generator


def generator_of(given: Any = None) -> np.random.Generator:
    """A NumPy generator itself; one of the streams of an object with `drawing()`; without either, of `app.seed`."""
    if given is None:
        return generator()
    if hasattr(given, "drawing"):
        with given.drawing():
            return generator()
    found: np.random.Generator = given
    return found
