"""Where random numbers come from: the k-th random operator after `seed(s)` always draws the same numbers.

A stream is named by the pair (seed, k), so a startup Program that was built with a seed and eager layers that
were made after `seed` with the same number get equal initial values, whatever else ran between.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_state = {"seed": secrets.randbits(32), "count": 0}


def seed(number: int) -> None:
    """Start the random streams anew, so that what follows is repeatable."""
    _state.update(seed=int(number), count=0)


def get_rng_state() -> list[tuple[int, int]]:
    """Where the random streams stand, for `set_rng_state`."""
    return [(int(_state["seed"]), int(_state["count"]))]


def set_rng_state(state_list: list[tuple[int, int]]) -> None:
    """Go on drawing from where the streams stood at `get_rng_state`."""
    (number, count), *_ = state_list
    _state.update(seed=number, count=count)


class Streams:
    """Streams of one's own: what is drawn inside of `drawing` changes nothing for others, nor they for it."""

    def __init__(self, seed: int, count: int = 0):
        self.place = (seed, count)

    @contextmanager
    def drawing(self, advance: bool = True) -> Iterator[None]:
        """Draw from these streams inside the block; unless they `advance`, the next block draws the same again."""
        outside = get_rng_state()
        set_rng_state([self.place])
        try:
            yield
        finally:
            if advance:
                ((seed, count),) = get_rng_state()
                self.place = (seed, count)
            set_rng_state(outside)


def next_stream() -> tuple[int, int]:
    """The name of the next stream of the global seed."""
    _state["count"] += 1
    return _state["seed"], _state["count"]


def generator(stream: tuple[int, int] | None = None) -> np.random.Generator:
    """The generator of a stream; without a name, of the next one."""
    return np.random.Generator(np.random.PCG64(_sequence(*(stream or next_stream()))))


def _sequence(seed: int, count: int) -> np.random.SeedSequence:
    # the leading 1 keeps these streams apart from those that shuffle an epoch, which are named by (seed, epoch)
    return np.random.SeedSequence(seed, spawn_key=(1, count))
