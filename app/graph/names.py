"""Names that no other variable has: `fc_0.w_0`, `fc_0.w_1` …"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_counters: Counter[str] = Counter()
_prefix = ""


def generate(key: str) -> str:
    """`key` with a number that was not given out before."""
    key = key if key.startswith(_prefix) else _prefix + key
    name = f"{key}_{_counters[key]}"
    _counters[key] += 1
    return name


@contextmanager
def guard() -> Iterator[None]:
    """Count from 0 inside the block, so that a Program built twice gets the same names."""
    global _counters
    outside, _counters = _counters, Counter()
    try:
        yield
    finally:
        _counters = outside


@contextmanager
def prefixed(prefix: str) -> Iterator[None]:
    """Put `prefix` before every name that is made inside the block, and after the prefixes around it."""
    global _prefix
    outside, _prefix = _prefix, _prefix + prefix
    try:
        yield
    finally:
        _prefix = outside
