"""The order of steps and the barriers between them: as few barriers as possible.

At a barrier all threads wait for the slowest. So all steps that need no barrier run first, then one barrier, then the
steps that needed it.
"""

from __future__ import annotations

from collections import defaultdict

from app.engine.compiled.steps import ROWS, WHOLE, Lowered, Share, Step

WINDOW = 12
"""The maximum number of delayed steps; their inputs stay alive and take memory."""
WINDOW_OF_TILES = 20
"""The same in a Program with steps on tiles of images, where a delay lets more of them run tile by tile."""

Touched = defaultdict[str, set[tuple[bool, Share | None]]]
"""The use of each variable since the last barrier: whether written, and in which share."""


def schedule(lowered: Lowered) -> None:
    """Order the steps and mark those that need a barrier before them."""
    touched: Touched = defaultdict(set)
    for name in lowered.gathered:
        touched[name].add((True, ROWS))
    ordered: list[Step] = []
    waiting: list[Step] = []
    for step in lowered.steps:
        if step.in_python:  # a Python call keeps its place
            _order(waiting, touched, ordered)
            ordered.append(step)
            waiting = []
            touched.clear()
        else:
            waiting.append(step)
    _order(waiting, touched, ordered)
    lowered.steps = ordered
    lowered.unsettled = {n for n, uses in touched.items() if any(written and s != WHOLE for written, s in uses)}


def _order(steps: list[Step], touched: Touched, into: list[Step]) -> None:
    before = _dependencies(steps)
    window = WINDOW_OF_TILES if any(step.is_tiled for step in steps) else WINDOW
    scheduled: set[int] = set()
    must_meet = False
    while steps:
        left = []
        for step in steps[:window]:
            if not before[id(step)] <= scheduled or _needs_barrier(step, touched):
                left.append(step)
                continue
            scheduled.add(id(step))
            into.append(step)
            if not step.is_free:
                step.must_meet, must_meet = must_meet, False
                for use in step.uses:
                    touched[use.name].add((use.is_written, use.share))
        if len(left) == len(steps[:window]):  # all need a barrier
            touched.clear()
            must_meet = True
        steps = left + steps[window:]


def _needs_barrier(step: Step, touched: Touched) -> bool:
    """Return whether a step and an earlier one use a variable, one of them writes to it, and threads may access the
    same elements.
    """
    return not step.is_free and any(
        (use.is_written or written) and (use.share is None or use.share != share)
        for use in step.uses
        for written, share in touched[use.name]
    )


def _dependencies(steps: list[Step]) -> dict[int, set[int]]:
    """Return, for each step, the steps that must run before it."""
    writer: dict[str, int] = {}
    readers: defaultdict[str, set[int]] = defaultdict(set)
    before: dict[int, set[int]] = {}
    for step in steps:
        needed: set[int] = set()
        uses = step.uses
        for use in uses:
            needed |= {writer[use.name]} if use.name in writer else set()
            needed |= readers[use.name] if use.is_written else set()
        for use in uses:
            if use.is_written:
                writer[use.name] = id(step)
                readers[use.name] = set()
            else:
                readers[use.name].add(id(step))
        before[id(step)] = needed - {id(step)}
    return before
