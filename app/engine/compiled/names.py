"""Unique names in generated source, close to those of the Program."""

from __future__ import annotations

import keyword
import re
from typing import Any

from app.engine.compiled import runtime
from app.ops.dtype import NAMES


class Names:
    """Assigns unique Python names to variables and functions."""

    def __init__(self) -> None:
        self._taken = set(RESERVED)
        self._given: dict[Any, str] = {}

    def is_given(self, word: str) -> bool:
        """Return whether a word is an assigned name, not one of the language or the runtime."""
        return word in self._taken and word not in RESERVED

    def of(self, key: Any, word: str) -> str:
        """Return a unique name close to the wanted one."""
        if key not in self._given:
            name = re.sub(r"\W", "_", word) or "_"
            name = f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
            unique, number = name, 2
            while unique in self._taken:
                unique, number = f"{name}_{number}", number + 1
            self._taken.add(unique)
            self._given[key] = unique
        return self._given[key]


RESERVED = frozenset((
    *runtime.CALLED, *NAMES, "reshape", "shape", "size", "ndarray", "np", "shard", "shards", "shared", "step", "order",
    "rows", "first", "last", "batch", "n", "lo", "hi", "iteration", "result", "train", "min", "range", "row", "folded",
    "u", "i", "inf", "nan", "tile", "lost", *(f"i{axis}" for axis in range(64)),
))  # fmt: skip
"""Names that every source uses."""
