"""The buffer plan: which variables may lie in the same memory, as one is no longer read when the other is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from app.engine.compiled.lowered import ROWS, Lowered, Step
from app.engine.compiled.schedule import reads_aligned
from app.engine.compiled.sizes import Shape, at
from app.ops.form import Elementwise, Fused


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
        total *= at(size, n)
    return total


def size_text(shape: Shape) -> str:
    """The number of elements as it stands in generated source."""
    return str(prod(shape))


def plan_buffers(lowered: Lowered, keep: Collection[str]) -> Plan:
    """Give each variable that a step writes a buffer; memory is used again when its variable is read for the last time.

    Threads may be a few steps apart. A buffer is therefore taken over only after the threads have met, or by a
    variable of the same shape and share as every use since then, where each thread stays in its own part.
    """
    last = _last_uses(lowered, keep)
    plan = Plan([], {})
    uses: list[set[tuple[Any, Shape]]] = []  # of each buffer, since the threads met: by which share, in which shape
    free: list[int] = []
    for name in sorted(lowered.gathered):
        plan.place[name] = _new(plan, uses, lowered, name)
    for index, step in enumerate(lowered.steps):
        if step.meet or step.in_python:
            for used in uses:
                used.clear()
        ending = [n for n in _roots(lowered, step) if last.get(n) == index and n not in lowered.gathered]
        for name in dict.fromkeys(lowered.root(n) for n in step.op.inputs if n):
            if name in plan.place:
                aligned = all(_aligned(lowered, step, n) for n in step.op.inputs if n and lowered.root(n) == name)
                uses[plan.place[name]].add((step.share if aligned else None, lowered.shapes[name]))
        for name in step.op.outputs if step.kind not in ("alias", "constant", "python") else ():
            if lowered.persists(name) or name in plan.place or name in lowered.kept:
                continue
            dying = [plan.place[n] for n in ending if n in plan.place and _may_overwrite(lowered, step, name, n)]
            mine = {(step.share, lowered.shapes[name])}
            fitting = (b for b in (*dying, *free) if plan.buffers[b].dtype == lowered.dtype(name) and uses[b] <= mine)
            buffer = next(fitting, None)
            if buffer is None:
                plan.place[name] = _new(plan, uses, lowered, name)
            else:
                plan.place[name] = buffer
                plan.buffers[buffer].shapes.append(lowered.shapes[name])
                ending = [n for n in ending if plan.place.get(n) != buffer]
                free = [b for b in free if b != buffer]
            uses[plan.place[name]] |= mine
        if step.inside:
            free = _plan_inside(lowered, step, plan, uses, free)
        free += [plan.place[n] for n in ending if n in plan.place]
    return plan


def _plan_inside(
    lowered: Lowered, step: Step, plan: Plan, uses: list[set[tuple[Any, Shape]]], free: list[int]
) -> list[int]:
    """Give what lives inside control flow its memory, one variable after the other; gives what is free afterwards."""
    order, last = _in_order(lowered, step)
    mine: list[int] = []  # free, and used by nobody but this step
    taken: list[str] = []
    for index, part in enumerate(order):
        for name in part.op.outputs if part.kind not in ("alias", "constant", "keep") else ():
            if name in plan.place or name in lowered.kept or lowered.root(name) != name or lowered.persists(name):
                continue
            use, dtype = (step.share, lowered.shapes[name]), lowered.dtype(name)
            dying = {plan.place[n]: n for n in taken if last[n] == index and _may_overwrite(lowered, part, name, n)}
            fitting = [b for b in (*dying, *mine) if plan.buffers[b].dtype == dtype]
            fitting += [b for b in free if plan.buffers[b].dtype == dtype and uses[b] <= {use}]
            if fitting:
                plan.place[name] = fitting[0]
                plan.buffers[fitting[0]].shapes.append(lowered.shapes[name])
            else:
                plan.place[name] = _new(plan, uses, lowered, name)
            buffer = plan.place[name]
            uses[buffer].add(use)
            mine, free = [b for b in mine if b != buffer], [b for b in free if b != buffer]
            taken = [n for n in (*taken, name) if n == name or plan.place[n] != buffer]
        ending = [n for n in taken if last[n] == index]
        mine += [plan.place[n] for n in ending]
        taken = [n for n in taken if n not in ending]
    return [*free, *mine, *(plan.place[n] for n in taken)]


def _in_order(lowered: Lowered, step: Step) -> tuple[list[Step], dict[str, int]]:
    """The steps inside a step as they are written, and after which of them each variable is needed no more.

    What was made before a loop and is read in it is needed until the loop ends, as it is read again and again.
    """
    order: list[Step] = []
    loops: list[tuple[int, int]] = []

    def visit(outer: Step) -> None:
        begin = 0
        for word, steps in outer.inside.items():
            first = len(order)
            for inner in steps:
                order.append(inner)
                visit(inner)
            if outer.kind == "while" and word == "condition":
                begin = first
            elif outer.kind == "while" and word == "body":
                loops.append((begin, len(order)))

    visit(step)
    made: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, part in enumerate(order):
        for name in {lowered.root(n) for n in (*part.op.inputs, *part.op.outputs, part.answer) if n}:
            made.setdefault(name, index)
            ends = [end - 1 for start, end in loops if made[name] < start <= index < end]
            last[name] = max([last.get(name, 0), index, *ends])
        if part.answer:
            end = index + sum(1 for _ in part.everything) - 1
            last[lowered.root(part.answer)] = max(last[lowered.root(part.answer)], end)
            for name in map(lowered.root, part.op.outputs):
                last[name] = max(last[name], end)
    return order, last


def _new(plan: Plan, uses: list[set[tuple[Any, Shape]]], lowered: Lowered, name: str) -> int:
    plan.buffers.append(Buffer(lowered.dtype(name), [lowered.shapes[name]]))
    uses.append({(ROWS, lowered.shapes[name])} if name in lowered.gathered else set())
    return len(plan.buffers) - 1


def _roots(lowered: Lowered, step: Step) -> list[str]:
    return list(dict.fromkeys(lowered.root(n) for n in (*step.op.inputs, *step.op.outputs) if n))


def _aligned(lowered: Lowered, step: Step, name: str) -> bool:
    return step.alone or reads_aligned(lowered, step, name)


def _may_overwrite(lowered: Lowered, step: Step, output: str, dying: str) -> bool:
    """Whether a loop may write an output over an input, as each element is read before its place is written."""
    form = step.op.definition.form
    same = [n for n in step.op.inputs if n and lowered.root(n) == dying]
    if (
        not isinstance(form, (Elementwise, Fused))
        or set(same) != {dying}
        or lowered.shapes[dying] != lowered.shapes[output]
    ):
        return False
    body = form.body if isinstance(form, Fused) else (step.op,)
    written = next(i for i, op in enumerate(body) if output in op.outputs)
    return not any(dying in op.inputs for op in body[written + 1 :])


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
