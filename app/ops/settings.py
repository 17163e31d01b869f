"""Exact comparison and printing of attributes, for which `==` and `repr` are not exact."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from app.ops.values import Attributes, Setting


def key_of(value: Setting) -> Hashable:
    """A key that is equal for two settings only if operators behave equally with both.

    It distinguishes 1 from True and 0.0 from -0.0, and includes every element of an array, and the attributes of plain
    data of a user's class. An object that is not plain data is its own key.
    """
    attributes = attributes_of(value)
    return (_content(value), key_of(attributes)) if attributes else _content(value)


def _content(value: Setting) -> Hashable:
    kind = type(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (float, complex, np.generic)):
        return kind, repr(value)
    if isinstance(value, (tuple, list)):
        return kind, tuple(map(key_of, value))
    if kind is dict:
        return kind, tuple((key_of(k), key_of(v)) for k, v in value.items())
    if isinstance(value, (set, frozenset)):
        return kind, frozenset(map(key_of, value))
    if isinstance(value, bytearray):
        return kind, bytes(value)
    if isinstance(value, slice):
        return kind, key_of((value.start, value.stop, value.step))
    exact = (int, str, bytes, range, type(None))
    is_exact = any(isinstance(value, base) and kind.__eq__ is base.__eq__ for base in exact)
    return (kind, value) if is_exact else _Itself(value)


class _Itself:
    """The key of an object: its identity. The object is kept alive, so the id is not reused."""

    def __init__(self, value: Setting):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def attributes_of(value: Setting) -> dict[str, Any]:
    """The attributes of plain data of a user's class, without those that are items of a dict."""
    held = getattr(value, "__dict__", None)
    plain = (int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, np.ndarray)
    if not held or not isinstance(value, plain) or isinstance(value, Enum):
        return {}
    items = value if isinstance(value, dict) else {}
    return {name: other for name, other in held.items() if dict.get(items, name) is not other}


def key_of_settings(settings: Attributes) -> Hashable:
    """The key of all attributes of an operator."""
    return tuple((name, key_of(settings[name])) for name in sorted(settings))


def is_default(value: Setting, default: Setting) -> bool:
    """Whether a setting has its default value, and so need not be printed."""
    try:
        return bool(value == default)
    except ValueError:  # comparing arrays returns an array
        return key_of(value) == key_of(default)


def format_setting(value: Setting) -> str:
    """The text of a setting; a large array is printed as its type and shape."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"<{value.dtype}{list(value.shape)}>"
    return repr(value)
