"""Functions that Numba would compile run as Python, where a test is not about machine code: compiling takes longest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.custom.numba_functions import interpreted


@contextmanager
def as_python() -> Iterator[None]:
    """As in the process in which a check looks for indices outside of arrays; not for functions that close over others
    of Numba, which would stay Python."""
    before, interpreted.on = interpreted.on, True
    try:
        yield
    finally:
        interpreted.on = before


@pytest.fixture
def uncompiled() -> Iterator[None]:
    with as_python():
        yield
