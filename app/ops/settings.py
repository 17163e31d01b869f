"""Exact comparison, immutability and printing of attributes, for which `==` and `repr` are not exact."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from app.reading import PACKAGE

if TYPE_CHECKING:
    from app.ops.values import Attributes, Setting


def key_of(value: Setting) -> Hashable:
    """A key that is equal for two settings only if operators behave equally with both.

    It distinguishes 1 from True and 0.0 from -0.0, and includes every element of an array, every field of a hashable
    dataclass, and the attributes of plain data of a user's class. Another object that is not plain data is its own key.
    """
    held = attributes_of(value)
    return (_content(value), key_of(held)) if held else _content(value)


_PLAIN = (int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, np.ndarray)


def attributes_of(value: Setting) -> dict[str, Any]:
    """The attributes of plain data of a user's class, without those that are items of a dict."""
    held = getattr(value, "__dict__", None)
    if not held or not isinstance(value, _PLAIN) or isinstance(value, Enum):
        return {}
    items = value if isinstance(value, dict) else {}
    return {name: other for name, other in held.items() if dict.get(items, name) is not other}


def _content(value: Setting) -> Hashable:
    if isinstance(value, np.ndarray):
        numbers = tuple(map(key_of, value.ravel().tolist())) if value.dtype.hasobject else value.tobytes()
        return np.ndarray, value.dtype.str, value.shape, numbers
    if isinstance(value, (float, complex, np.generic)):
        return type(value), repr(value)
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(key_of, value))
    if isinstance(value, dict):
        items = tuple((key_of(k), key_of(v)) for k, v in value.items())
        return type(value), value.default_factory if isinstance(value, defaultdict) else None, items
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(map(key_of, value))
    if isinstance(value, bytearray):
        return type(value), bytes(value)
    if isinstance(value, slice):
        return slice, key_of((value.start, value.stop, value.step))
    if compares_exactly(value):
        return type(value), value
    if isinstance(value, Hashable) and is_dataclass(value):
        content = {field.name: getattr(value, field.name, None) for field in fields(value)}
        return type(value), key_of({**content, **getattr(value, "__dict__", {})})
    return type(value), _Itself(value)


def compares_exactly(value: Setting) -> bool:
    """Whether `==` of a hashable object is identity, or one that is known to be exact. That of a user's class may take
    objects as equal that behave differently, as a frozen dataclass does for its fields 0.0 and -0.0.
    """
    compare = type(value).__eq__
    module = getattr(getattr(compare, "__objclass__", compare), "__module__", None) or ""
    return isinstance(value, Hashable) and module.partition(".")[0] in ("builtins", PACKAGE, "numpy", "pathlib")


class _Itself:
    """The key of an unhashable object: its identity. The object is kept alive, so the id is not reused."""

    def __init__(self, value: Setting):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def is_immutable(value: Setting) -> bool:
    """Whether a setting is immutable: not a list, a dict, a set, a bytearray or a writable array."""
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    return not isinstance(value, (list, dict, set, bytearray))


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
