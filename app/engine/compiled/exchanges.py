"""What processes have to give each other of a Program that they share out as threads do, and at which meeting.

A thread writes its share of a variable, and another reads all of it after they have met. Processes that each run some
of the threads have memory of their own, so that what is read by others has to be sent to them when they meet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from math import prod
from typing import Any, NamedTuple

from app.engine.compiled.lowered import LAST, ROWS, WHOLE, Lowered
from app.engine.compiled.runtime import cut
from app.engine.compiled.schedule import FREE, clashes, uses
from app.engine.compiled.sizes import at


class Written(NamedTuple):
    """A variable that is written in shares."""

    name: str
    share: Any

    def ends(self, lowered: Lowered, n: int, ranks: int) -> list[int]:
        """How many of its elements the first ranks write together, beginning with none of them."""
        first, *rest = [at(size, n) for size in lowered.shapes[self.name]] or [1]
        if self.share == LAST:
            return [0] * ranks + [first * prod(rest)]
        if self.share == WHOLE:
            return [0] + [first * prod(rest)] * ranks
        return [cut.py_func(first, rank, ranks) * prod(rest) for rank in range(ranks + 1)]


class Exchanges(NamedTuple):
    """What passes between processes."""

    meetings: list[list[Written]]
    """Of each meeting of an iteration, in order: what was written before it and is read by others after it. The first
    is where an iteration begins, with what the one before has left."""
    lasting: list[Written]
    """What lasts after the run, of which each process has written its share."""
    fetched: dict[str, Any]
    """In which share each fetched variable is written down."""


def exchanges(lowered: Lowered, fetch: Collection[str]) -> Exchanges:
    """What has to be exchanged in each iteration of a lowered Program, and at its end."""
    roots = {name: lowered.root(name) for name in fetch}
    unsettled = {name: lowered.unsettled.get(root, WHOLE) for name, root in roots.items()}
    meets_at_end = not set(unsettled.values()) <= {WHOLE, LAST}
    fetched = dict.fromkeys(fetch, WHOLE) if meets_at_end else unsettled
    read: defaultdict[str, set[Any]] = defaultdict(set)
    for name, root in roots.items():
        read[root].add(fetched[name])
    working = [step for step in lowered.steps if step.kind not in FREE]
    for step in working:
        for name, written, share in uses(lowered, step):
            if not written:
                read[name].add(share)

    meetings: list[list[Written]] = [[]]
    made = [Written(name, ROWS) for name in sorted(lowered.gathered)]
    lasting: dict[Written, None] = {}

    def met(made: list[Written]) -> list[Written]:
        return [each for each in dict.fromkeys(made) if any(clashes(share, each.share) for share in read[each.name])]

    for step in working:
        if step.meet:
            meetings.append(met(made))
            made = []
        for name, written, share in uses(lowered, step):
            if written and name in lowered.shapes:
                made.append(Written(name, share))
                if lowered.persists(name):
                    lasting[made[-1]] = None
    if meets_at_end:
        meetings.append(met(made))
        made = []
    meetings[0] = [each for each in met(made) if lowered.persists(each.name)]
    return Exchanges(meetings, list(lasting), fetched)
