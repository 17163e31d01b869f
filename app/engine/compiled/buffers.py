"""The buffer plan: which variables may lie in the same memory, as one is no longer read when the other is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from app.engine.compiled.lowering import Lowered
from app.engine.compiled.sizes import Shape


@dataclass
class Buffer:
    """Memory for one variable after the other."""

    dtype: str
    shapes: list[Shape] = field(default_factory=list)

    def elements(self, n: int) -> int:
        """How many elements the largest of its variables has in a batch of n."""
        return max(_count(shape, n) for shape in self.shapes)


@dataclass
class Plan:
    """The buffers, and which variable lies in which."""

    buffers: list[Buffer]
    place: dict[str, int]

    def bytes(self, n: int) -> int:
        """The memory of all buffers for a batch of n."""
        return sum(b.elements(n) * np.dtype(b.dtype).itemsize for b in self.buffers)


def _count(shape: Shape, n: int) -> int:
    total = 1
    for size in shape:
        total *= size.at(n)
    return total


def size_text(shape: Shape) -> str:
    """The number of elements as it stands in generated source."""
    times = [s for s in shape if s.times]
    plain = 1
    for s in shape:
        plain *= 1 if s.times else s.plus
    parts = ([str(plain)] if plain != 1 or not times else []) + [f"({s.text})" if s.plus else s.text for s in times]
    return " * ".join(parts)


def plan_buffers(lowered: Lowered, keep: Collection[str]) -> Plan:
    """Give each variable that a step writes a buffer; memory is used again when its variable is read for the last time.

    Threads may be a few steps apart. A buffer is therefore taken over only by a variable of the same shape and
    share, where each thread stays in its own part, or after the threads have met.
    """
    last = _last_uses(lowered, keep)
    plan = Plan([], {})
    for name in sorted(lowered.gathered):
        plan.place[name] = _take(plan, [], lowered.dtype(name), lowered.shapes[name], 0)
    free: list[tuple[int, int, Shape]] = []  # buffer, meetings at that time, shape of its last variable
    meetings = 0
    for index, step in enumerate(lowered.steps):
        meetings += step.meet or step.in_python
        for name in step.op.outputs if step.kind not in ("alias", "constant", "python") else ():
            if not lowered.persists(name) and name not in plan.place:
                plan.place[name] = _take(plan, free, lowered.dtype(name), lowered.shapes[name], meetings)
        for name in dict.fromkeys(lowered.root(n) for n in (*step.op.inputs, *step.op.outputs) if n):
            if last.get(name) == index and name in plan.place and name not in lowered.gathered:
                free.append((plan.place[name], meetings, lowered.shapes[name]))
    return plan


def _last_uses(lowered: Lowered, keep: Collection[str]) -> dict[str, int]:
    """The step after which each variable is read no more; those kept have none."""
    last: dict[str, int] = {}
    for index, step in enumerate(lowered.steps):
        for name in (*step.op.inputs, *step.op.outputs):
            if name:
                last[lowered.root(name)] = index
    for name in keep:
        last.pop(lowered.root(name), None)
    return last


def _take(plan: Plan, free: list[tuple[int, int, Shape]], dtype: str, shape: Shape, meetings: int) -> int:
    for entry in free:
        buffer, freed_at, before = entry
        if plan.buffers[buffer].dtype == dtype and (before == shape or freed_at < meetings):
            free.remove(entry)
            plan.buffers[buffer].shapes.append(shape)
            return buffer
    plan.buffers.append(Buffer(dtype, [shape]))
    return len(plan.buffers) - 1
