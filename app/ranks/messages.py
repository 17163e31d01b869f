"""Messages: large arrays are sent as they are, small ones of one type together in a buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

BUCKET = 1 << 16
"""Arrays of this many bytes are sent alone: transfer takes longer than the latency of a message."""

Exchange = Callable[[np.ndarray], None]
"""The in-place operation on a message."""


def in_messages(arrays: Sequence[np.ndarray], bucket: int, exchange: Exchange) -> Callable[[], None]:
    """A function that applies an in-place operation to arrays, one message at a time."""
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
