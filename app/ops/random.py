"""Random streams: the k-th random operator after `seed(s)` always draws the same numbers.

A stream is named by the pair (seed, k), so a startup Program built with a seed and eager layers created after `seed`
with the same number get equal initial values.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

import numpy as np

Stream: TypeAlias = "tuple[int, int]"
"""The name of a stream: a seed, and the number of the stream since that seed was set."""


class Streams:
    """A sequence of random streams, which threads may share.

    Inside `drawing`, a thread uses its own sequence, so that threads do not affect each other.
    """

    def __init__(self, seed: int, count: int = 0):
        self.place = (seed, count)
        """The seed, and how many streams were used so far."""
        self._lock = threading.RLock()

    def next(self) -> tuple[int, int]:
        """The name of the next stream."""
        with self._lock:
            seed, count = self.place
            self.place = (seed, count + 1)
            return self.place

    @contextmanager
    def drawing(self, advance: bool = True) -> Iterator[None]:
        """Draw from these streams inside the block; unless they `advance`, the next block draws the same again."""
        previous = _drawn_from.get()
        _drawn_from.set(self if advance else Streams(*self.place))
        try:
            yield
        finally:
            _drawn_from.set(previous)


_of_process = Streams(secrets.randbits(32))
_drawn_from = ContextVar("drawn_from", default=_of_process)
"""The streams of this thread: those of the process, except inside `Streams.drawing`."""


def seed(number: int) -> None:
    """Restart the random streams from a seed, so that results are reproducible."""
    _drawn_from.get().place = (int(number), 0)


def get_rng_state() -> list[tuple[int, int]]:
    """The state of the random streams, for `set_rng_state`."""
    return [_drawn_from.get().place]


def set_rng_state(state_list: list[tuple[int, int]]) -> None:
    """Restore a state of the random streams from `get_rng_state`."""
    (number, count), *_ = state_list
    _drawn_from.get().place = (int(number), int(count))


def generator(stream: Stream | None = None) -> np.random.Generator:
    """The generator of a stream, by default of the next stream."""
    return np.random.Generator(np.random.PCG64(_sequence(*(stream or _drawn_from.get().next()))))


def _sequence(seed: int, count: int) -> np.random.SeedSequence:
    # the leading 1 separates these streams from those of (seed, epoch), which shuffle the batches of an epoch
    return np.random.SeedSequence(seed, spawn_key=(1, count))
