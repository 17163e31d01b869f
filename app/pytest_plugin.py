"""The plugin of pytest: the fixture `check_operator`, and the option `--opsmith-seed`.

It is loaded by every suite of an environment in which opsmith is installed, so it imports nothing until it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("opsmith")
    group.addoption("--opsmith-seed", type=int, default=0, help="draws other inputs for check_operator (default: 0)")


@pytest.fixture
def check_operator(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`opsmith.testing.check_operator`, which draws inputs by `--opsmith-seed`."""
    from functools import partial

    from app.testing import check_operator as check

    return partial(check, seed=request.config.getoption("--opsmith-seed"))
