"""What a world of ranks does, and what can go wrong in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from app.errors import AppError

if TYPE_CHECKING:
    import numpy as np

Reduction = Literal["sum", "avg", "prod", "max", "min"]

TIMEOUT = 120.0
"""Seconds that ranks wait for each other by default."""


class DistError(AppError, RuntimeError):
    """Ranks that cannot work together as they were started, or as they were asked to."""


class RankError(DistError):
    """Another rank failed, or did not come: what to print, and the exit status."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.exit_status = status


class World:
    """All ranks, seen by one of them: here a world of one rank, where nothing has to be done.

    Every rank makes the same calls in the same order. Buffers are C-contiguous arrays that are changed in place. A
    sum has the same bits at every rank. A call that waits for another rank longer than the time limit raises a
    RankError that names who did not come.
    """

    rank, size = 0, 1
    local_rank = 0
    """The rank among those of this host."""
    said = ""
    """A line about the ranks and their threads, for the introduction of a run; '' for one rank."""

    def name(self, rank: int) -> str:
        """What a message calls a rank."""
        return f"rank {rank}"

    def configure(self, timeout: float = TIMEOUT) -> None:
        """Set the time limit."""

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        """Replace each rank's numbers by the sum over all ranks, or another reduction."""

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        """Replace the root's numbers by the sum over all ranks; the others keep theirs."""

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        """Replace each rank's numbers by those of the root."""

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, in their order, at each of them: plain data, such as text and numbers."""
        return [value]

    def barrier(self) -> None:
        """Wait until every rank has come here."""

    def shared(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Arrays like these in memory that all ranks see, where the mean is taken without copies; None without such."""
        return None

    def leave(self) -> None:
        """Wait until every rank has finished its work."""
