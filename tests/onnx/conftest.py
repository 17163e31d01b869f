"""Tests here draw calls of operators as those of `tests/ops` do; each builds Programs of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import static
from app.graph import names

sys.path.append(str(Path(__file__).parents[1] / "ops"))


@pytest.fixture(autouse=True)
def _own_programs() -> Iterator[None]:
    with (
        names.guard(),
        static.program_guard(static.Program(), static.Program()),
        static.scope_guard(static.Scope()),
    ):
        yield
