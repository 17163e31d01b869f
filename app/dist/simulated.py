"""A network that is slower than the one at hand: what each collective would take on it is added as waiting.

The cost model is the one of docs/scaling.md. A message of n bytes takes `latency + n / bandwidth`; among p ranks a
collective needs so many messages one after the other, and sends so many bytes over the busiest wire.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

_SLEEP_LESS = 0.0001
"""A sleep ends about so many seconds late."""


class Cost(NamedTuple):
    """What a collective needs: messages one after the other, and bytes through one rank's wire."""

    messages: int
    bytes: float


def allreduce(ranks: int, size: int) -> Cost:
    """Sums of pieces, halved and halved again, which are then gathered the same way back (Rabenseifner)."""
    return Cost(2 * _rounds(ranks), 2 * size * (ranks - 1) / ranks)


def reduce(ranks: int, size: int) -> Cost:
    """The same, but that the pieces are gathered at one rank."""
    return allreduce(ranks, size)


def broadcast(ranks: int, size: int) -> Cost:
    """Pieces are scattered over a tree, and gathered by all."""
    return Cost(2 * _rounds(ranks), 2 * size * (ranks - 1) / ranks)


def exchange(ranks: int, size: int) -> Cost:
    """Parts are gathered by all, in rounds of twice as many."""
    return Cost(_rounds(ranks), size * (ranks - 1) / ranks)


def barrier(ranks: int) -> Cost:
    return Cost(_rounds(ranks), 0)


def _rounds(ranks: int) -> int:
    return math.ceil(math.log2(ranks))


class Network:
    """What collectives among so many ranks take."""

    def __init__(self, ranks: int, latency: float = 0.0, bandwidth: float | None = None):
        self._ranks, self._latency, self._bandwidth = ranks, latency, bandwidth or math.inf

    def allreduce(self, size: int) -> float:
        """Seconds that an allreduce of so many bytes takes."""
        return self._seconds(allreduce(self._ranks, size))

    def reduce(self, size: int) -> float:
        return self._seconds(reduce(self._ranks, size))

    def broadcast(self, size: int) -> float:
        return self._seconds(broadcast(self._ranks, size))

    def exchange(self, size: int) -> float:
        return self._seconds(exchange(self._ranks, size))

    def barrier(self) -> float:
        return self._seconds(barrier(self._ranks))

    def _seconds(self, cost: Cost) -> float:
        return cost.messages * self._latency + cost.bytes / self._bandwidth

    @staticmethod
    def add(delay: float) -> None:
        """Wait for so long: asleep for most of it, so that other ranks have the core."""
        if not delay:
            return
        until = time.perf_counter() + delay
        while (left := until - time.perf_counter()) > 0:
            if left > _SLEEP_LESS:
                time.sleep(left - _SLEEP_LESS)
