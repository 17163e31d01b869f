"""One Program that many processes run together, each of them some of its threads: see `exchanges`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.engine.compiled import blas
from app.engine.compiled.buffers import Plan
from app.engine.compiled.exchanges import Written, exchanges
from app.engine.compiled.lowered import WHOLE, Lowered
from app.engine.settled import Settled
from app.engine.team import Parted, Team
from app.graph.scope import Scope


class Teamwork:
    """What one Program needs to be run by a team, from run to run."""

    def __init__(self, team: Team, lowered: Lowered, plan: Plan, fetch: Sequence[str]):
        self.team, self._lowered, self._plan = team, lowered, plan
        self._exchanges = exchanges(lowered, fetch)
        passed = [*(each for meeting in self._exchanges.meetings for each in meeting), *self._exchanges.lasting]
        self._lasting = list(dict.fromkeys(each.name for each in passed if lowered.persists(each.name)))
        self._settled = Settled(team.rooms)
        self._buffers: list[np.ndarray] = []
        self._room_for = 0
        self.threads = min(team.gather(blas.threads()))
        """Of each process."""

    def buffers_for(self, n: int) -> list[np.ndarray]:
        """The buffers for batches of up to n."""
        if n > self._room_for:
            wanted = [np.empty(buffer.elements(n), buffer.dtype) for buffer in self._plan.buffers]
            self._buffers, self._room_for = self.team.rooms(wanted) or wanted, n
        return self._buffers

    def settle(self, scope: Scope) -> None:
        """Let what lasts, and is exchanged, live where all see it."""
        self._settled.settle([name for name in self._lasting if name in scope.values], scope)

    def meeting(self, number: int, n: int, array: Callable[[str, int], np.ndarray]) -> Callable[[], None]:
        """What is exchanged at a meeting, in a batch of n."""
        return self._exchanging(self._exchanges.meetings[number], n, array)

    @property
    def meetings(self) -> int:
        """How often the threads meet in an iteration."""
        return len(self._exchanges.meetings)

    def end(self, array: Callable[[str, int], np.ndarray], results: dict[str, np.ndarray]) -> None:
        """Give all what lasts of a run, and the results of it, which one of them has written down."""
        self._exchanging(self._exchanges.lasting, 0, array)()
        parts = []
        for name, numbers in results.items():
            first = numbers.size if self._exchanges.fetched[name] == WHOLE else 0
            parts.append(Parted(numbers.reshape(numbers.size), [0, *[first] * (self.team.size - 1), numbers.size]))
        self.team.exchanging(parts)()

    def _exchanging(
        self, written: Sequence[Written], n: int, array: Callable[[str, int], np.ndarray]
    ) -> Callable[[], None]:
        parts = [Parted(array(w.name, n).reshape(-1), w.ends(self._lowered, n, self.team.size)) for w in written]
        return self.team.exchanging(parts)


class Run:
    """Meets the other processes, in one run of a Program: `sizes` gives the rows of each iteration's batch."""

    def __init__(self, work: Teamwork, sizes: Callable[[int], int], array: Callable[[str, int], np.ndarray]):
        self._work, self._sizes, self._array = work, sizes, array
        self._met = 0
        self._known: dict[tuple[int, int], Any] = {}

    def meet(self) -> None:
        """Exchange what the meeting that is next is for."""
        iteration, number = divmod(self._met, self._work.meetings)
        self._met += 1
        key = number, self._sizes(iteration)
        if key not in self._known:
            self._known[key] = self._work.meeting(*key, self._array)
        self._known[key]()
