"""The names of a module that is written, each with one meaning, and its constants."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class Names:
    """The names that are taken, and the constants by name."""

    def __init__(self, used: Iterable[str] = ()):
        self._used = set(used)
        self._constants: dict[str, Any] = {}

    def fresh(self, wish: str) -> str:
        """A name like `wish` that is none of those before."""
        name, number = wish, 1
        while name in self._used:
            number += 1
            name = f"{wish}_{number}"
        self._used.add(name)
        return name

    def constant(self, wish: str, value: Any) -> str:
        """The name of a constant: `wish`, unless it has another value or meaning."""
        name, number = wish, 1
        while name in self._used and not (name in self._constants and same(self._constants[name], value)):
            number += 1
            name = f"{wish}_{number}"
        self._used.add(name)
        self._constants[name] = value
        return name


def same(left: Any, right: Any) -> bool:
    """Whether two constants are the same as source; NaN is itself."""
    return type(left) is type(right) and repr(left) == repr(right)


def literal(value: Any) -> str:
    """A number or a text as source."""
    if isinstance(value, str):
        return repr(value) if '"' in value or "\\" in value else f'"{value}"'
    if isinstance(value, float) and not math.isfinite(value):
        return "math.nan" if value != value else ("math.inf" if value > 0 else "-math.inf")
    return repr(value)
