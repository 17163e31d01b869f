"""Programs of a test's own, with names that count from 0, and values in a Scope of its own; for the rooms that ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app import static
from app.graph import names


@pytest.fixture(autouse=True)
def own_programs() -> Iterator[None]:
    with (
        names.guard(),
        static.program_guard(static.Program(), static.Program()),
        static.scope_guard(static.Scope()),
    ):
        yield
