"""Each test builds Programs of its own."""

from __future__ import annotations

from typing import Any

import pytest
from func_modes import InProgram, OnTensors
from own_programs import own_programs

__all__ = ["own_programs"]


@pytest.fixture(params=[InProgram, OnTensors])
def mode(request: pytest.FixtureRequest) -> Any:
    """A way to call `py_func`: in a Program, or on Tensors."""
    return request.param()
