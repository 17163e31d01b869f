"""How many threads a batch is worth: in a small one, meeting the others takes longer than doing their share."""

from __future__ import annotations

from math import isqrt, prod

from app.engine.compiled.lowered import Lowered, Step
from app.engine.compiled.schedule import FREE
from app.engine.compiled.sizes import at

FOR_EACH = 750_000
"""So many operations are worth a thread, which does some tens of them in a nanosecond: with two, from 9 rows on of the
network of seed.yaml, where one and two threads were measured to take as long with 8."""

ELEMENT = 16
"""As many operations, or so, as an element of anything but a product takes."""


def threads_worth(lowered: Lowered, n: int, most: int) -> int:
    """The number of threads, up to `most`, for batches of n rows.

    What a function that is called costs is not known: all threads are worth it.
    """
    if most == 1 or any(step.kind == "returning" and not step.alone for step in lowered.steps):
        return most
    operations = sum(_operations(lowered, step, n) for step in lowered.steps if step.kind not in FREE)
    return min(most, max(1, operations // FOR_EACH))


def _operations(lowered: Lowered, step: Step, n: int) -> int:
    names = [str(name) for name in (*step.op.inputs[-2:], *step.op.outputs) if name]
    sizes = [prod(at(size, n) for size in lowered.shapes[name]) for name in names]
    if step.kind == "product":  # of (a, b) and (b, c) to (a, c): a * b * c
        return isqrt(prod(sizes))
    return max(sizes, default=0) * ELEMENT
