"""A cache that makes repeated eager calls of an operator cheaper.

How inputs are converted and whether they are valid depends only on their types and shapes, so both are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Plan = Sequence[tuple[int, np.dtype]]
"""The positions of Python numbers and the types of the arrays that replace them; the other inputs are unchanged."""

_NUMBERS = (bool, int, float)
_MOST = 1024
"""The maximum number of entries; only programs whose shapes never repeat reach it."""


def kinds_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """The key of inputs: element types of arrays, and classes of other values."""
    return tuple([v.dtype if v.__class__ is np.ndarray else v.__class__ for v in values])


class Plans:
    """What is remembered for one operator."""

    __slots__ = ("by_kinds", "checked")

    def __init__(self) -> None:
        self.by_kinds: dict[tuple[Any, ...], Plan] = {}
        self.checked: set[Any] = set()
        """Shapes and types of inputs that shape inference has accepted."""

    def learn(self, kinds: tuple[Any, ...], given: Sequence[Any], prepared: Sequence[Any]) -> None:
        """Remember how inputs were converted, if arrays stayed as they were and only Python numbers became arrays."""
        plan = []
        for place, (before, after) in enumerate(zip(given, prepared, strict=True)):
            if type(before) in _NUMBERS and type(after) is np.ndarray:
                plan.append((place, after.dtype))
            elif before is not after or not (before is None or type(before) is np.ndarray):
                return
        from_default = any(
            target.kind == "f" for _, target in plan
        )  # its type may be the default type, which can change
        if from_default and not any(getattr(kind, "kind", "") == "f" for kind in kinds):
            return
        if len(self.by_kinds) < _MOST:
            self.by_kinds[kinds] = plan

    def leaves(self, values: Sequence[Any]) -> bool:
        """Whether all inputs are known to need no conversion."""
        return self.by_kinds.get(kinds_of(values)) == []

    def passed(self, key: Any) -> None:
        """Remember that shape inference has accepted inputs of these shapes and types."""
        if len(self.checked) < _MOST:
            self.checked.add(key)
