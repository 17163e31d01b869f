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
        self._used = set(RESERVED)
        self._by_key: dict[Any, str] = {}

    def is_assigned(self, word: str) -> bool:
        """Return whether a word is an assigned name, not one of the language or the runtime."""
        return word in self._used and word not in RESERVED

    def of(self, key: Any, word: str) -> str:
        """Return a unique name close to the wanted one."""
        if key not in self._by_key:
            name = re.sub(r"\W", "_", word) or "_"
            name = f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
            unique, number = name, 2
            while unique in self._used:
                unique, number = f"{name}_{number}", number + 1
            self._used.add(unique)
            self._by_key[key] = unique
        return self._by_key[key]


RESERVED = frozenset((
    *runtime.CALLED, *NAMES, "reshape", "shape", "size", "ndarray", "np", "shard", "shards", "shared", "step", "order",
    "rows", "first", "last", "batch", "n", "lo", "hi", "iteration", "result", "train", "min", "range", "row", "folded",
    "u", "i", "inf", "nan", "tile", "lost", *(f"i{axis}" for axis in range(64)),
))  # fmt: skip
"""Names that every source uses."""
