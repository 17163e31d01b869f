"""10,000 iterations in each engine hold as much memory at their end as after the first hundred."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from app.run.config import Config

ENGINES = get_args(get_type_hints(Config)["engine"])
ROOT = Path(__file__).parents[2]
LONG_RUNS = ROOT / "tests" / "run" / "long_runs.py"
ITERATIONS = 10_000
_growths: dict[str, float] = {}


@pytest.mark.parametrize("engine", ENGINES)
def test_memory_does_not_grow(engine, figure):
    command = [sys.executable, str(LONG_RUNS), engine, str(ITERATIONS)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environment)
    assert done.returncode == 0, done.stderr
    first, last = map(int, done.stdout.split())
    _growths[engine] = 100 * (last - first) / first
    figure("iterations", ITERATIONS)
    figure("memory growth", ", ".join(f"{engine} {growth:+.1f} %" for engine, growth in _growths.items()))
    assert last <= 1.02 * first
