"""What a world of ranks is: what passes between them; and the world of one, in which nothing does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

Reduction = Literal["sum", "avg", "prod", "max", "min"]

TIMEOUT = 120.0
"""Seconds that ranks wait for each other, unless told otherwise."""


class World(Protocol):
    """All ranks, seen by one of them. Every rank makes the same calls in the same order.

    Buffers are C-contiguous arrays that are changed in place. A sum has the same bits at every rank. A call waits
    for the other ranks until `timeout` has passed, and then raises a RankError that names who did not come.
    """

    rank: int
    size: int
    local_rank: int
    """The rank among those of this machine."""
    said: str
    """A line about the ranks and their shares of the cores, for a run's introduction; '' where there is one alone."""

    def name(self, rank: int) -> str:
        """What a message calls a rank."""

    def configure(self, timeout: float = TIMEOUT) -> None:
        """Set how long to wait."""

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        """Replace each rank's numbers by the sum over all ranks, or another reduction."""

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        """Replace the root's numbers by the sum over all ranks; the others keep theirs."""

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        """Replace each rank's numbers by those of the root."""

    def gather(self, value: Any) -> list[Any]:
        """What every rank has to say, in their order, at every one of them: plain data, such as text and numbers."""

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Arrays such as these, in memory that all ranks see; None, if they cannot. All ask for the same."""

    def barrier(self) -> None:
        """Wait until every rank has come here."""


class Alone:
    """A world of one rank, in which nothing is to be done."""

    rank, size, local_rank, said = 0, 1, 0, ""

    def name(self, rank: int) -> str:
        return f"rank {rank}"

    def configure(self, timeout: float = TIMEOUT) -> None:
        pass

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        pass

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        return None

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        pass

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        pass

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def barrier(self) -> None:
        pass
