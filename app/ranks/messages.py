"""How arrays travel: large ones as they lie in memory, small ones of one type together in a buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

BUCKET = 1 << 16
"""An array of so many bytes travels by itself: sending it takes longer than a message needs to get under way."""

Exchange = Callable[[np.ndarray], None]
"""What is done with a message, in place."""


def in_messages(arrays: Sequence[np.ndarray], bucket: int, exchange: Exchange) -> Callable[[], None]:
    """A function that does something with all numbers of the arrays, in place, a message at a time."""
    large = [array.reshape(array.size) for array in arrays if array.nbytes >= bucket]
    small: dict[str, list[np.ndarray]] = {}
    for array in arrays:
        if array.nbytes < bucket:
            small.setdefault(array.dtype.str, []).append(array.reshape(array.size))
    packed = [(np.concatenate(group), group) for group in small.values()]

    def run() -> None:
        for message in large:
            exchange(message)
        for message, group in packed:
            np.concatenate(group, out=message)
            exchange(message)
            start = 0
            for array in group:
                array[:] = message[start : start + array.size]
                start += array.size

    return run
