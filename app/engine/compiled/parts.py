"""Splits steps into functions of the generated source. Compile time grows faster than linearly with the size of a
function, so a long Program becomes many short functions. Layers that differ only in variable names share a function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from app.engine.compiled.kinds.native import NativeStep
from app.engine.compiled.names import Names
from app.engine.compiled.steps import Lowered, Step
from app.engine.compiled.threads import Worth

LIMIT = 32
"""The maximum number of steps per function; a longer Program is split at products."""


@dataclass
class Part:
    """Consecutive compiled steps: one function of the source, or a call of an identical one."""

    name: str
    steps: list[tuple[int, NativeStep]]
    arguments: list[str] = field(default_factory=list)
    """The variables that it takes as arguments, in order."""

    @property
    def first(self) -> int:
        """The index of its first step."""
        return self.steps[0][0]

    @cached_property
    def worth(self) -> Worth:
        """The number of threads that it is worth."""
        return Worth([step for _, step in self.steps])


def parts_of(lowered: Lowered) -> list[Part]:
    """Split the steps of a Program into parts."""
    parts: list[Part] = []
    is_short = sum(_weight(step) for step in lowered.steps if not step.is_free) <= LIMIT
    begins = True
    for index, step in enumerate(lowered.steps):
        if isinstance(step, NativeStep):
            is_full = parts and sum(_weight(other) for _, other in parts[-1].steps) + _weight(step) > LIMIT
            goes_on = index > 0 and step.joins_tiles_of(lowered.steps[index - 1])
            if begins or is_full or (step.begins_part and not is_short and not goes_on):
                parts.append(Part(f"part_{len(parts)}", []))
            parts[-1].steps.append((index, step))
            begins = False
        elif step.in_python:
            begins = True
    return parts


def _weight(step: Step) -> int:
    """Return the number of steps, including nested ones."""
    return 1 + sum(not inner.is_free for inner in step.everything if inner is not step)


_TEXT_OR_WORD = re.compile(r"""b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*""")
"""A text among the settings, in which a word is no variable, or a word."""


def pattern(lines: Sequence[str], names: Names, called: Collection[str]) -> str:
    """Return the source with variables replaced by numbers, equal for functions that differ only in names."""
    order: dict[str, str] = {}

    def is_variable(word: str) -> bool:
        return names.is_assigned(word) and word not in called

    def numbered(word: re.Match[str]) -> str:
        return order.setdefault(word[0], f"_{len(order)}_") if is_variable(word[0]) else word[0]

    return "\n".join(_TEXT_OR_WORD.sub(numbered, line) for line in lines if not line.lstrip().startswith("#"))
