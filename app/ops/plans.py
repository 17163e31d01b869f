"""What was learned of an operator's earlier calls, so that the next one with inputs of the same kinds costs less.

Preparing inputs and checking them depends on their types and shapes alone, so a call that is like an earlier one
need not do it again: it follows the plan of that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Plan = Sequence[tuple[int, np.dtype]]
"""Which inputs are Python numbers that become arrays of a type; all others are arrays, and stay as they are."""

_NUMBERS = (bool, int, float)
_MOST = 1024
"""Plans and checks that are kept; more are met only by programs whose shapes never repeat."""


def kinds_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """The element types of arrays, and the classes of other values."""
    return tuple([v.dtype if v.__class__ is np.ndarray else v.__class__ for v in values])


class Plans:
    """The plans of one operator, by the kinds of its inputs: element types of arrays, classes of other values."""

    __slots__ = ("by_kinds", "checked")

    def __init__(self) -> None:
        self.by_kinds: dict[tuple[Any, ...], Plan] = {}
        self.checked: set[Any] = set()
        """Shapes and types that inference had nothing against."""

    def learn(self, kinds: tuple[Any, ...], given: Sequence[Any], prepared: Sequence[Any]) -> None:
        """Remember what preparing did, if that was to leave arrays alone and to make arrays of numbers."""
        plan = []
        for place, (before, after) in enumerate(zip(given, prepared, strict=True)):
            if type(before) in _NUMBERS and type(after) is np.ndarray:
                plan.append((place, after.dtype))
            elif before is not after or not (before is None or type(before) is np.ndarray):
                return
        from_default = any(target.kind == "f" for _, target in plan)  # perhaps of the default type, which can change
        if from_default and not any(getattr(kind, "kind", "") == "f" for kind in kinds):
            return
        if len(self.by_kinds) < _MOST:
            self.by_kinds[kinds] = plan

    def leaves(self, values: Sequence[Any]) -> bool:
        """Whether all are arrays of types that preparing is known to leave as they are."""
        return self.by_kinds.get(kinds_of(values)) == []

    def passed(self, key: Any) -> None:
        """Remember that inference had nothing against inputs of these shapes and types."""
        if len(self.checked) < _MOST:
            self.checked.add(key)
