"""The buffer plan: variables that are not alive at the same time share memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import prod

import numpy as np

from app.engine.compiled.shapes import at
from app.engine.compiled.steps import ROWS, Lowered, Share, Step
from app.ops.size import Shape

Uses = list[set[tuple[Share | None, Shape]]]
"""For each buffer, the shares and shapes in which it was used since the last barrier."""


@dataclass
class Buffer:
    """Memory that several variables use in turn."""

    dtype: str
    shapes: list[Shape] = field(default_factory=list)

    def elements(self, n: int) -> int:
        """Return the elements of its largest variable in a batch of n."""
        return max(prod(at(size, n) for size in shape) for shape in self.shapes)


@dataclass
class Plan:
    """The buffers, and the buffer of each variable."""

    buffers: list[Buffer]
    place: dict[str, int]

    def bytes(self, n: int) -> int:
        """Return the size of all buffers for a batch of n."""
        return sum(b.elements(n) * np.dtype(b.dtype).itemsize for b in self.buffers)


def plan_buffers(lowered: Lowered, keep: Collection[str]) -> Plan:
    """Assign a buffer to each variable; memory is reused after the variable's last read.

    Threads may be a few steps apart. A buffer is therefore reused only after a barrier, or by a variable with the same
    shape and share as every use since the barrier, where each thread accesses only its own part.
    """
    last = _last_uses(lowered, keep)
    plan = Plan([], {})
    uses: Uses = []
    free: list[int] = []
    for name in sorted(lowered.gathered):
        plan.place[name] = _new(plan, uses, lowered, name)
    for index, step in enumerate(lowered.steps):
        if step.must_meet or step.in_python:
            for used in uses:
                used.clear()
        ending = [n for n in _roots(lowered, step) if last.get(n) == index and n not in lowered.gathered]
        for name in dict.fromkeys(map(lowered.root, step.reads)):
            if name in plan.place:
                own = all(step.keeps_to_share(n) for n in step.reads if lowered.root(n) == name)
                uses[plan.place[name]].add((step.share if own else None, lowered.shapes[name]))
        for name in step.allocated:
            if lowered.persists(name) or name in plan.place:
                continue
            dying = [plan.place[n] for n in ending if n in plan.place and step.may_overwrite(name, n)]
            own_use = {(step.share, lowered.shapes[name])}
            fitting = (
                b for b in (*dying, *free) if plan.buffers[b].dtype == lowered.dtype(name) and uses[b] <= own_use
            )
            buffer = next(fitting, None)
            if buffer is None:
                plan.place[name] = _new(plan, uses, lowered, name)
            else:
                plan.place[name] = buffer
                plan.buffers[buffer].shapes.append(lowered.shapes[name])
                ending = [n for n in ending if plan.place.get(n) != buffer]
                free = [b for b in free if b != buffer]
            uses[plan.place[name]] |= own_use
        if step.bodies:
            free = _plan_inside(lowered, step, plan, uses, free)
        free += [plan.place[n] for n in ending if n in plan.place]
    return plan


def _plan_inside(lowered: Lowered, step: Step, plan: Plan, uses: Uses, free: list[int]) -> list[int]:
    """Assign memory to the variables inside control flow; returns the buffers that are free afterwards."""
    order, last = _in_order(lowered, step)
    own: list[int] = []  # free, and used only by this step
    alive: list[str] = []
    for index, part in enumerate(order):
        for name in part.allocated:
            if name in plan.place or lowered.root(name) != name or lowered.persists(name):
                continue
            use, dtype = (step.share, lowered.shapes[name]), lowered.dtype(name)
            dying = {plan.place[n]: n for n in alive if last[n] == index and part.may_overwrite(name, n)}
            fitting = [b for b in (*dying, *own) if plan.buffers[b].dtype == dtype]
            fitting += [b for b in free if plan.buffers[b].dtype == dtype and uses[b] <= {use}]
            if fitting:
                plan.place[name] = fitting[0]
                plan.buffers[fitting[0]].shapes.append(lowered.shapes[name])
            else:
                plan.place[name] = _new(plan, uses, lowered, name)
            buffer = plan.place[name]
            uses[buffer].add(use)
            own, free = [b for b in own if b != buffer], [b for b in free if b != buffer]
            alive = [n for n in (*alive, name) if n == name or plan.place[n] != buffer]
        ending = [n for n in alive if last[n] == index]
        own += [plan.place[n] for n in ending]
        alive = [n for n in alive if n not in ending]
    return [*free, *own, *(plan.place[n] for n in alive)]


def _in_order(lowered: Lowered, step: Step) -> tuple[list[Step], dict[str, int]]:
    """Return the steps inside a step in order, and the last use of each variable. A variable that is defined before a
    loop and read in it stays alive until the loop ends.
    """
    order: list[Step] = []
    loops: list[tuple[int, int]] = []

    def visit(outer: Step) -> None:
        repeats_from = None
        for word, steps in outer.bodies.items():
            if word in outer.repeated and repeats_from is None:
                repeats_from = len(order)
            for inner in steps:
                order.append(inner)
                visit(inner)
        if repeats_from is not None:
            loops.append((repeats_from, len(order)))

    visit(step)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, part in enumerate(order):
        for name in {lowered.root(n) for n in (*part.op.inputs, *part.op.outputs, part.condition) if n}:
            first.setdefault(name, index)
            ends = [end - 1 for start, end in loops if first[name] < start <= index < end]
            last[name] = max([last.get(name, 0), index, *ends])
        if part.condition:
            end = index + sum(1 for _ in part.everything) - 1
            for name in map(lowered.root, (part.condition, *part.op.outputs)):
                last[name] = max(last[name], end)
    return order, last


def _new(plan: Plan, uses: Uses, lowered: Lowered, name: str) -> int:
    plan.buffers.append(Buffer(lowered.dtype(name), [lowered.shapes[name]]))
    uses.append({(ROWS, lowered.shapes[name])} if name in lowered.gathered else set())
    return len(plan.buffers) - 1


def _roots(lowered: Lowered, step: Step) -> list[str]:
    return list(dict.fromkeys(map(lowered.root, (*step.reads, *step.op.outputs))))


def _last_uses(lowered: Lowered, keep: Collection[str]) -> dict[str, int]:
    """Return the last step that reads each variable; fetched variables have none."""
    last: dict[str, int] = {}
    for index, step in enumerate(lowered.steps):
        for name in _roots(lowered, step):
            last[name] = index
    for name in keep:
        last.pop(lowered.root(name), None)
    return last
