"""`World`: the ranks of a run and their collective operations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from app.errors import AppError

if TYPE_CHECKING:
    import numpy as np

Reduction = Literal["sum", "avg", "prod", "max", "min"]

TIMEOUT = 120.0
"""The default time limit of waiting, in seconds."""


class DistError(AppError, RuntimeError):
    """Ranks that were started or used in a way that cannot work."""


class RankError(DistError):
    """Another rank failed or did not respond. Has the message and the exit status."""

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
    said = ""
    """A line about the ranks and their threads for the first lines of a run; '' for one rank."""

    def name(self, rank: int) -> str:
        """The name of a rank in messages."""
        return f"rank {rank}"

    def configure(self, timeout: float = TIMEOUT) -> None:
        """Set the time limit."""

    def time_limit(self) -> AbstractContextManager[None]:
        """A block of work between collectives, such as steps: this rank ends if it takes longer than the time limit,
        whatever native code does, as when all ranks hang and none waits for another."""
        return nullcontext()

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        """Replace an array on every rank with its sum, or another reduction, over all ranks."""

    def reduce(self, buffer: np.ndarray, root: int = 0) -> None:
        """Replace an array on the root with its sum over all ranks; the others keep theirs."""

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> None:
        """Replace an array on every rank with that of the root."""

    def gather(self, value: Any) -> list[Any]:
        """Collect plain data, such as text and numbers, of all ranks on every rank, in order."""
        return [value]

    def barrier(self) -> None:
        """Wait until every rank has called this."""

    def shared(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Allocate such arrays in shared memory, where means need no copies; None without shared memory."""
        return None

    def leave(self) -> None:
        """Wait until every rank has finished its work."""
