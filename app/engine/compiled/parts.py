"""Which steps make up one function of the generated source.

The time that compiling takes grows faster than a function does, so a long Program becomes many short functions; and
layers that are alike, apart from the names of their variables, share theirs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from app.engine.compiled.kinds.native import NativeStep
from app.engine.compiled.names import Names
from app.engine.compiled.steps import Lowered, Step

LIMIT = 32
"""The most steps of one function: a longer Program has parts, each of which begins at a product."""


@dataclass
class Part:
    """Consecutive compiled steps: one function of the source, or a call of an identical one."""

    name: str
    steps: list[tuple[int, NativeStep]]
    arguments: list[str] = field(default_factory=list)
    """The variables that it takes, in order."""

    @property
    def first(self) -> int:
        """The number of its first step."""
        return self.steps[0][0]


def parts_of(lowered: Lowered) -> list[Part]:
    """The steps of a Program in parts."""
    parts: list[Part] = []
    inside = sum(_weight(step) - 1 for step in lowered.steps if step.bodies)
    is_short = len(lowered.steps) + inside <= LIMIT
    begins = True
    for index, step in enumerate(lowered.steps):
        if isinstance(step, NativeStep):
            is_full = parts and sum(_weight(other) for _, other in parts[-1].steps) + _weight(step) > LIMIT
            if begins or is_full or (step.begins_part and not is_short):
                parts.append(Part(f"part_{len(parts)}", []))
            parts[-1].steps.append((index, step))
            begins = False
        elif step.in_python:
            begins = True
    return parts


def _weight(step: Step) -> int:
    """How many steps it is to a compiler, with those inside it."""
    return 1 + sum(not inner.is_free for inner in step.everything if inner is not step)


def pattern(lines: Sequence[str], names: Names, called: Collection[str]) -> str:
    """The source with variables replaced by numbers: equal for functions that differ only in their names."""
    order: dict[str, str] = {}

    def is_variable(word: str) -> bool:
        return names.is_given(word) and word not in called

    def numbered(word: re.Match[str]) -> str:
        return order.setdefault(word[0], f"_{len(order)}_") if is_variable(word[0]) else word[0]

    return "\n".join(re.sub(r"[A-Za-z_]\w*", numbered, line) for line in lines if not line.lstrip().startswith("#"))
