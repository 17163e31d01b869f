"""Which steps make up one function of the generated source.

The time that compiling takes grows faster than a function does, so a long Program becomes many short functions; and
layers that are alike, apart from the names of their variables, share theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.engine.compiled.lowering import Lowered, Step
from app.engine.compiled.names import Names
from app.engine.compiled.schedule import FREE

LIMIT = 32
"""A Program of no more steps is one function; in a longer one a part begins at each product, and holds no more."""


@dataclass
class Part:
    """A run of steps with no Python call among them: one function of the source, or a call of one that is alike."""

    name: str
    steps: list[tuple[int, Step]]
    arguments: list[str] = field(default_factory=list)
    """The variables that it takes, in order."""

    @property
    def first(self) -> int:
        """The number of its first step."""
        return self.steps[0][0]


def parts_of(lowered: Lowered) -> list[Part]:
    """The steps of a Program in parts."""
    parts: list[Part] = []
    short = len(lowered.steps) <= LIMIT
    fresh = True
    for index, step in enumerate(lowered.steps):
        if step.in_python:
            fresh = True
        elif step.kind not in FREE:
            full = parts and len(parts[-1].steps) >= LIMIT
            if fresh or full or (step.kind == "product" and not short):
                parts.append(Part(f"part_{len(parts)}", []))
            parts[-1].steps.append((index, step))
            fresh = False
    return parts


def pattern(lines: Sequence[str], names: Names) -> str:
    """What functions that differ only in the names of their variables have in common."""
    order: dict[str, str] = {}

    def numbered(word: re.Match[str]) -> str:
        return order.setdefault(word[0], f"_{len(order)}_") if names.is_given(word[0]) else word[0]

    return "\n".join(re.sub(r"[A-Za-z_]\w*", numbered, line) for line in lines if not line.lstrip().startswith("#"))
