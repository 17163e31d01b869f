"""Each test builds Programs of its own; code compiled by tests is kept in a folder that ends with the session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from app import static
from app.graph import names


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("OPSMITH_CACHE")
    os.environ["OPSMITH_CACHE"] = before or str(tmp_path_factory.mktemp("compiled"))
    yield
    if before is None:
        del os.environ["OPSMITH_CACHE"]


@pytest.fixture(autouse=True)
def _own_programs() -> Iterator[None]:
    with (
        names.guard(),
        static.program_guard(static.Program(), static.Program()),
        static.scope_guard(static.Scope()),
    ):
        yield
