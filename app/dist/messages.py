"""How arrays travel: the large ones as they lie in memory, the small ones of one type together in a flat buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

BUCKET = 1 << 16
"""An array of so many bytes travels by itself: sending it takes longer than a message needs to get under way."""

Exchange = Callable[[np.ndarray], None]
"""What is done with a message, in place."""


def in_messages(arrays: Sequence[np.ndarray], bucket: int, exchange: Exchange) -> Callable[[], None]:
    """What does something with all numbers of the arrays, in place, a message at a time, as often as it is called."""
    large = [array.reshape(array.size) for array in arrays if array.nbytes >= bucket]
    small: dict[str, list[np.ndarray]] = {}
    for array in arrays:
        if array.nbytes < bucket:
            small.setdefault(array.dtype.str, []).append(array.reshape(array.size))
    together = [_Together(of_one_type) for of_one_type in small.values()]

    def run() -> None:
        for message in large:
            exchange(message)
        for packed in together:
            packed.run(exchange)

    return run


class _Together:
    """Arrays of one type, with the buffer that they travel in."""

    def __init__(self, arrays: Sequence[np.ndarray]):
        self.message = np.empty(sum(array.size for array in arrays), arrays[0].dtype)
        ends = np.cumsum([array.size for array in arrays]).tolist()
        self.places = [(array, self.message[end - array.size : end]) for array, end in zip(arrays, ends, strict=True)]

    def run(self, exchange: Exchange) -> None:
        for array, place in self.places:
            place[:] = array
        exchange(self.message)
        for array, place in self.places:
            array[:] = place
