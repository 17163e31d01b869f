"""One value or several, as a list."""

from __future__ import annotations

from typing import Any


def as_list(value: Any) -> list[Any]:
    """The values of a list or a tuple; anything else is one value."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
