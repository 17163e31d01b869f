"""The order of steps and the places where threads meet: as few meetings as the Program allows.

A meeting costs every thread the wait for the slowest. So all steps that need none run first, and then, after one
meeting, all those that were waiting for it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from app.engine.compiled.lowered import LAST, ROWS, WHOLE, Lowered, Step
from app.ops.form import Filling, Product, Reduction, Returning, Spread

WINDOW = 12
"""How many steps may be put off: what they read stays alive until they ran, in memory that others could have used."""

FREE = ("alias", "constant")
"""Kinds of steps that do nothing."""

OUTSIDE = ""
"""What Python that compiled code calls may change besides values, so that its calls keep the order of the Program."""

Touched = defaultdict[str, set[tuple[bool, Any]]]
"""How each variable was used since the threads last met: whether written, and by which share."""

Use = tuple[str, bool, Any]
"""A variable, whether it is written, and by which share of the threads (None: each reads all of it)."""


def schedule(lowered: Lowered) -> None:
    """Put the steps in order and mark those before which the threads have to meet."""
    touched: Touched = defaultdict(set)
    for name in lowered.gathered:
        touched[name].add((True, ROWS))
    ordered: list[Step] = []
    waiting: list[Step] = []
    for step in lowered.steps:
        if step.in_python:  # what is before it stays before it
            _run(lowered, waiting, touched, ordered)
            ordered.append(step)
            waiting = []
            touched.clear()
        else:
            waiting.append(step)
    _run(lowered, waiting, touched, ordered)
    lowered.steps = ordered
    lowered.unsettled = {name: share for name, seen in touched.items() for written, share in seen if written}


def _run(lowered: Lowered, steps: list[Step], touched: Touched, into: list[Step]) -> None:
    before = _dependencies(lowered, steps)
    done: set[int] = set()
    meet = False
    alone = {WHOLE: 0, LAST: 0}  # how many steps since the last meeting only one thread works on
    while steps:
        left = []
        for step in steps[:WINDOW]:
            if not before[id(step)] <= done or not _find_share(lowered, step, touched, alone):
                left.append(step)
                continue
            done.add(id(step))
            into.append(step)
            if step.kind not in FREE:
                step.meet, meet = meet, False
                for name, written, share in uses(lowered, step):
                    touched[name].add((written, share))
        if len(left) == len(steps[:WINDOW]):  # all are waiting for other threads
            touched.clear()
            meet, alone = True, {WHOLE: 0, LAST: 0}
        steps = left + steps[WINDOW:]


def _find_share(lowered: Lowered, step: Step, touched: Touched, alone: dict[str, int]) -> bool:
    """Whether a step can run before the next meeting; what one thread does alone, the least busy one takes."""
    if step.kind in FREE:
        return True
    for share in _shares(step, alone):
        step.share = share
        if not any(_clash(w, s, other) for name, w, s in uses(lowered, step) for other in touched[name]):
            if share in alone:
                alone[share] += 1
            return True
    return False


def _shares(step: Step, alone: dict[str, int]) -> list[Any]:
    """The shares in which a step may run, the best one first."""
    if step.kind == "in_place":
        return [WHOLE]
    return sorted(alone, key=lambda s: alone[s]) if step.alone else [step.share]


def uses(lowered: Lowered, step: Step) -> list[Use]:
    """The variables that a step writes and reads."""
    found: list[Use] = [(lowered.root(n), True, step.share) for n in step.op.outputs]
    for name in (n for n in step.reads if n not in lowered.constants):
        share = step.share if step.alone or reads_aligned(lowered, step, name) else None
        found.append((lowered.root(name), False, share))
    if step.kind == "in_place":
        found.append((OUTSIDE, True, WHOLE))
    return found


def _dependencies(lowered: Lowered, steps: list[Step]) -> dict[int, set[int]]:
    """For each step, those that have to run before it: it reads what they write, or writes what they read or write."""
    writer: dict[str, int] = {}
    readers: defaultdict[str, set[int]] = defaultdict(set)
    before: dict[int, set[int]] = {}
    for step in steps:
        needed: set[int] = set()
        used = uses(lowered, step)
        for name, written, _ in used:
            needed |= {writer[name]} if name in writer else set()
            needed |= readers[name] if written else set()
        for name, written, _ in used:
            if written:
                writer[name] = id(step)
                readers[name] = set()
            else:
                readers[name].add(id(step))
        before[id(step)] = needed - {id(step)}
    return before


def reads_aligned(lowered: Lowered, step: Step, name: str) -> bool:
    """Whether a thread reads of a variable only the rows that are its own share of the step."""
    shape, form = lowered.shapes[name], step.op.definition.form
    output = lowered.shapes[step.op.outputs[0]]
    if step.alone or not shape or shape[0] != output[0]:
        return False
    if isinstance(form, Product):
        position = step.op.inputs.index(name) - (2 if form.step else 0)
        return position < 0 or (position == 0 and not step.op.attributes[form.transposes[0]])
    if isinstance(form, Reduction):
        return 0 not in form.axes(step.op.attributes, len(shape))
    if isinstance(form, Spread):
        return len(shape) == len(output) and step.op.inputs[0] == name
    return isinstance(form, (Filling, Returning)) or len(shape) == len(output)


def _clash(written: bool, share: Any, other: tuple[bool, Any]) -> bool:
    return (written or other[0]) and clashes(share, other[1])


def clashes(share: Any, other: Any) -> bool:
    """Whether threads that use a variable in these shares may come upon each other's elements."""
    return share is None or share != other
