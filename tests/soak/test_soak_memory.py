"""10,000 iterations in each engine hold as much memory at their end as after the first hundred."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from app.run.config import Config

ENGINES = get_args(get_type_hints(Config)["engine"])
ITERATIONS = 10_000
_growths: dict[str, float] = {}


@pytest.mark.parametrize("engine", ENGINES)
def test_memory_does_not_grow(engine, python, figure):
    first, last = map(int, python("tests/run/long_runs.py", engine, str(ITERATIONS), PYTHONPATH=".").split())
    _growths[engine] = 100 * (last - first) / first
    figure("iterations", ITERATIONS)
    figure("memory growth", ", ".join(f"{engine} {growth:+.1f} %" for engine, growth in _growths.items()))
    assert last <= 1.02 * first
