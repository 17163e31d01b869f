"""Each test builds Programs of its own, with names that count from 0, and keeps values in a Scope of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from func_modes import InProgram, OnTensors

from app import static
from app.graph import names


@pytest.fixture(autouse=True)
def _own_programs() -> Iterator[None]:
    with (
        names.guard(),
        static.program_guard(static.Program(), static.Program()),
        static.scope_guard(static.Scope()),
    ):
        yield


@pytest.fixture(params=[InProgram, OnTensors])
def mode(request: pytest.FixtureRequest) -> Any:
    """A way to call `py_func`: in a Program, or on Tensors."""
    return request.param()
