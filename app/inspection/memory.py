"""The memory of a Program's values while it runs: with one buffer for each, and with the engine's buffer plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from app.engine.compiled.buffers import Plan, plan_buffers
from app.engine.compiled.lower import lower
from app.engine.compiled.schedule import schedule
from app.engine.compiled.shapes import at
from app.engine.compiled.steps import Lowered
from app.engine.compiled.trial import why_not
from app.graph.program import Block, Operator, Program
from app.ops.lowering import LoopGradient


@dataclass(frozen=True)
class Needs:
    """The operators and the memory of a Program for one batch size."""

    operators: int
    """Including those inside control flow."""
    apart: dict[str, int]
    """The bytes of each variable that an operator makes, except persistable ones."""
    lowered: Lowered
    plan: Plan
    batch: int

    @property
    def bytes(self) -> int:
        """The memory of the buffer plan, which is held during the whole run."""
        return self.plan.bytes(self.batch)

    @property
    def bytes_apart(self) -> int:
        """The memory with one buffer for each variable."""
        return sum(self.apart.values())


def needs(program: Program, fetch: Sequence[str], batch: int) -> Needs:
    """The needs of a Program as it is, with the compiled engine's buffer plan."""
    lowered = lower(program, set(fetch), why_not)
    schedule(lowered)
    apart = {}
    for name, shape in lowered.shapes.items():
        outside = lowered.is_data(name) or lowered.persists(name)
        if not outside:
            apart[name] = prod(at(size, batch) for size in shape) * np.dtype(lowered.dtype(name)).itemsize
    return Needs(
        len(list(operators_of(program.global_block()))), apart, lowered, plan_buffers(lowered, set(fetch)), batch
    )


def operators_of(block: Block) -> Iterator[Operator]:
    """The operators of a block, each followed by those that run inside it."""
    for op in block.ops:
        yield op
        for body in op.bodies.values():
            yield from operators_of(body.block)


def table(built: Needs, after: Needs) -> str:
    """A table of the memory before and after the passes and with the buffer plan, and of each buffer's variables."""
    rows = [
        ("one buffer for each variable, as built", f"{len(built.apart)} variables", built.bytes_apart),
        ("one buffer for each variable, after the passes", f"{len(after.apart)} variables", after.bytes_apart),
        ("the buffer plan", f"{len(after.plan.buffers)} buffers", after.bytes),
    ]
    whole = max(built.bytes_apart, 1)
    loops = any(isinstance(step.op.definition.lowering, LoopGradient) for step in after.lowered.everything)
    growing = ", and the values of each iteration of a loop, for its gradient" if loops else ""
    lines = [f"For a batch of {after.batch}, beside what is fed and what persists{growing}:", ""]
    lines += [f"{what:47} {many:>14} {size:>14,} bytes {size / whole:5.0%}" for what, many, size in rows]
    inside = defaultdict(list)
    for name, place in after.plan.place.items():
        inside[place].append(name)
    lines.append("")
    for place, buffer in enumerate(after.plan.buffers):
        size = buffer.elements(after.batch) * np.dtype(buffer.dtype).itemsize
        lines.append(f"buffer_{place:<4} {size:>12,} bytes  {', '.join(inside[place])}")
    return "\n".join(lines)
