"""Each test builds Programs of its own, and engines may use two threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from own_programs import own_programs
from threadpoolctl import threadpool_limits

__all__ = ["own_programs"]


@pytest.fixture(autouse=True, scope="module")
def _two_threads() -> Iterator[None]:
    with threadpool_limits(2, user_api="blas"):
        yield
