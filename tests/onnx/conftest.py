"""Tests here draw calls of operators as those of `tests/ops` do; each builds Programs of its own."""

import sys
from pathlib import Path

from own_programs import own_programs

__all__ = ["own_programs"]

sys.path.append(str(Path(__file__).parents[1] / "ops"))
