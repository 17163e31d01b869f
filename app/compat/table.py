"""A façade's module as a table: the names that it takes over from the framework below."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def taken(below: Any, words: str) -> dict[str, Any]:
    """Each name among the words, with what it stands for below; `new=old` takes one over under another name."""
    pairs = [word.partition("=") for word in words.split()]
    return {name: getattr(below, old or name) for name, _, old in pairs}


def everything(below: Any) -> dict[str, Any]:
    """All names that a module below offers, but for its submodules."""
    return {name: value for name in below.__all__ if not isinstance(value := getattr(below, name), ModuleType)}
