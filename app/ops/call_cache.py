"""A cache that makes repeated eager calls of an operator cheaper.

How inputs are converted and whether they are valid depends only on their types and shapes, so both are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from app.ops.values import Operand

Conversions = Sequence[tuple[int, np.dtype]]
"""The positions of Python numbers and the types of the arrays that replace them; the other inputs are unchanged."""

Signature = tuple[tuple[tuple[int, ...], np.dtype], ...]
"""The shapes and types of the inputs."""

_NUMBERS = (bool, int, float)
_MAX_ENTRIES = 1024
"""The maximum number of entries; only programs whose shapes never repeat reach it."""


Kinds = tuple[np.dtype | type, ...]
"""For each input the element type of an array, or the class of another value."""


def kinds_of(values: Sequence[Operand]) -> Kinds:
    """The kinds of inputs."""
    return tuple([v.dtype if v.__class__ is np.ndarray else v.__class__ for v in values])


class CallCache:
    """What is remembered for one operator."""

    __slots__ = ("conversions", "valid")

    def __init__(self) -> None:
        self.conversions: dict[Kinds, Conversions] = {}
        self.valid: set[Signature] = set()
        """Shapes and types of inputs that shape inference has accepted."""

    def remember_conversions(self, kinds: Kinds, values: Sequence[Operand], prepared: Sequence[Operand]) -> None:
        """Remember how inputs were converted, if arrays stayed as they were and only Python numbers became arrays."""
        conversions = []
        for position, (before, after) in enumerate(zip(values, prepared, strict=True)):
            if type(before) in _NUMBERS and type(after) is np.ndarray:
                conversions.append((position, after.dtype))
            elif before is not after or not (before is None or type(before) is np.ndarray):
                return
        # a floating type may be the default type, which can change
        to_float = any(dtype.kind == "f" for _, dtype in conversions)
        if to_float and not any(getattr(kind, "kind", "") == "f" for kind in kinds):
            return
        if len(self.conversions) < _MAX_ENTRIES:
            self.conversions[kinds] = conversions

    def needs_no_conversion(self, values: Sequence[Operand]) -> bool:
        """Whether all inputs are known to need no conversion."""
        return self.conversions.get(kinds_of(values)) == []

    def remember_valid(self, signature: Signature) -> None:
        """Remember that shape inference has accepted inputs of these shapes and types."""
        if len(self.valid) < _MAX_ENTRIES:
            self.valid.add(signature)
