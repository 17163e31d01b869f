"""Settings of operators held against each other: exactly, whatever they are, where `==` and `repr` are not exact."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np


def key_of(value: Any) -> Hashable:
    """A key that two settings share only if operators do the same with both.

    It tells 1 from True and 0.0 from -0.0, and takes in every number of an array, of which `repr` shows a few. What is
    no plain data is its own key.
    """
    if isinstance(value, np.ndarray):
        numbers = tuple(map(key_of, value.ravel().tolist())) if value.dtype.hasobject else value.tobytes()
        return np.ndarray, value.dtype.str, value.shape, numbers
    if isinstance(value, (float, complex, np.generic)):
        return type(value), repr(value)
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(key_of, value))
    if isinstance(value, dict):
        return dict, tuple((key_of(k), key_of(v)) for k, v in value.items())
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(map(key_of, value))
    if isinstance(value, slice):
        return slice, key_of((value.start, value.stop, value.step))
    if isinstance(value, Hashable):
        return type(value), value
    return type(value), _Itself(value)


class _Itself:
    """The key of what cannot be hashed: the object, which it keeps alive."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def is_lasting(value: Any) -> bool:
    """Whether a setting is the same for as long as it is the same object: no list, dict or array that may change."""
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    return not isinstance(value, (list, dict, set))


def key_of_settings(settings: Mapping[str, Any]) -> Hashable:
    """A key of all settings of an operator."""
    return tuple((name, key_of(settings[name])) for name in sorted(settings))


def same_settings(some: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether an operator does the same with both."""
    return key_of_settings(some) == key_of_settings(others)


def is_usual(value: Any, usual: Any) -> bool:
    """Whether a setting need not be shown, as it is the usual one."""
    try:
        return bool(value == usual)
    except ValueError:  # arrays, whose comparison gives an array
        return key_of(value) == key_of(usual)


def shown(value: Any) -> str:
    """A setting as it is printed: an array by its type and shape, as its numbers may be many."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"<{value.dtype}{list(value.shape)}>"
    return repr(value)
