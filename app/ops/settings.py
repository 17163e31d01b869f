"""Exact comparison and printing of attributes, for which `==` and `repr` are not exact."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from app.ops.values import Attributes, Setting


def key_of(value: Setting) -> Hashable:
    """A key that is equal for two settings only if operators behave equally with both.

    It distinguishes 1 from True and 0.0 from -0.0, and includes every element of an array. An object of any class that
    is not named here is its own key.
    """
    kind = type(value)
    if kind is np.ndarray and not value.dtype.hasobject:
        return kind, value.dtype.str, value.shape, value.tobytes()
    if kind in (float, complex) or isinstance(value, np.generic):
        return kind, repr(value)
    if kind is tuple:
        return kind, tuple(map(key_of, value))
    if kind is slice:
        return kind, key_of((value.start, value.stop, value.step))
    return (kind, value) if kind in (bool, int, str, bytes, range, type(None)) else _Itself(value)


class _Itself:
    """The key of an object: its identity. The object is kept alive, so the id is not reused."""

    def __init__(self, value: Setting):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


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
