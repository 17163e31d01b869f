"""Unique names of variables: `fc_0.w_0`, `fc_0.w_1` …"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_lock = threading.RLock()
_of_process: Counter[str] = Counter()
_counters = ContextVar("counters", default=_of_process)
"""The number of names generated from each key; all threads share it, except inside `guard`."""
_prefix = ContextVar("prefix", default="")


def generate(key: str) -> str:
    """`key` followed by a number that was not used before."""
    prefix, counters = _prefix.get(), _counters.get()
    key = key if key.startswith(prefix) else prefix + key
    with _lock:
        number = counters[key]
        counters[key] += 1
    return f"{key}_{number}"


@contextmanager
def guard() -> Iterator[None]:
    """Count from 0 inside the block, in this thread, so that a Program that is built twice gets the same names."""
    previous = _counters.get()
    _counters.set(Counter())
    try:
        yield
    finally:
        _counters.set(previous)


@contextmanager
def prefixed(prefix: str) -> Iterator[None]:
    """Prefix every name that this thread generates inside the block; nested prefixes are concatenated."""
    previous = _prefix.get()
    _prefix.set(previous + prefix)
    try:
        yield
    finally:
        _prefix.set(previous)
