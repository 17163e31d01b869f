"""Where random numbers stand that operators of the user's draw from NumPy or Python, and not from the framework."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np

from app.errors import FileError


def state() -> dict[str, np.ndarray]:
    """Where the generators stand that all of a process share."""
    _, keys, place, has_spare, spare = np.random.get_state()
    _, words, gauss = random.getstate()
    return {
        "numpy": np.array(keys),
        "numpy.rest": np.array([place, has_spare, spare], np.float64),
        "python": np.array(words, np.uint32),
        "python.rest": np.array([] if gauss is None else [gauss], np.float64),
    }


def restore(found: Mapping[str, np.ndarray]) -> None:
    """Let them go on from such a place."""
    try:
        place, has_spare, spare = found["numpy.rest"].tolist()
        if not 0 <= place <= len(found["numpy"]):
            raise ValueError(f"place {place}")  # NumPy believes it
        gauss = found["python.rest"].tolist()
        np.random.set_state(("MT19937", found["numpy"], int(place), int(has_spare), spare))
        random.setstate((3, tuple(found["python"].tolist()), gauss[0] if gauss else None))
    except (KeyError, ValueError, TypeError) as error:
        raise FileError(f"the state of random numbers cannot be taken over: {error}") from error
