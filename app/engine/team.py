"""What an engine asks of processes that run one Program together: memory that all see, and exchanges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np


class Parted(NamedTuple):
    """Numbers in a row of which each process has made a part."""

    numbers: np.ndarray
    ends: list[int]
    """Where the part of each process ends, behind the 0 where the first begins."""


class Team(Protocol):
    """The processes that share out a Program, seen by one of them."""

    rank: int
    size: int

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Arrays such as these, in memory that all processes see; None, if they cannot. All ask for the same."""

    def gather(self, value: Any) -> list[Any]:
        """What every process has to say, in their order, at every one of them: plain data, such as text and numbers."""

    def exchanging(self, parts: Sequence[Parted]) -> Callable[[], None]:
        """What gives every process the parts of all others, whenever all call it: at once, if they lie in `rooms`."""
