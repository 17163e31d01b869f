"""All threads run the Programs of these tests, however small they are, and no key of code stands for two sources."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import pytest

from app.engine.compiled import native_code, threads

_NAMES = {"name", "array", "memory", "index", "text", "function"}
_sources: dict[str, list[str]] = {}


@pytest.fixture(autouse=True)
def _all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shared out among threads goes wrong, if it does, in small Programs as well as in large ones."""
    monkeypatch.setattr(threads, "FOR_EACH", 1)


@pytest.fixture(autouse=True)
def _a_key_for_each_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources that share machine code have the same types and constants, of which only the names may differ."""
    load = native_code.load

    def checked(pattern: str, functions: Any, called: Any) -> native_code.NativeCode:
        code = load(pattern, functions, called)
        source = [*_facts([(f.parameters, f.body, f.is_called_by_python) for f in functions.values()])]
        assert _sources.setdefault(code.key, source) == source
        return code

    monkeypatch.setattr(native_code, "load", checked)


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def _facts(node: Any) -> Iterator[str]:
    """Everything in a tree of the loop language but names."""
    if fields := _fields(type(node)):
        yield type(node).__name__
        values = ((name, getattr(node, name)) for name in fields)
        node = [v for name, v in values if v is not None and not (name in _NAMES and isinstance(v, str))]
    if isinstance(node, (list, tuple)):
        for part in node:
            yield from _facts(part)
    else:
        yield repr(node)
