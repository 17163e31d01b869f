"""What a function of single numbers gives as Python, and when Numba compiles it."""

from __future__ import annotations

import math

import pytest
from numba import njit

import app

pytestmark = pytest.mark.slow


def scaled(x, n=10**10):
    return x * (n * n) / 1e20


def test_integers_that_wrap_around_in_compiled_code_fail_with_both_numbers() -> None:
    findings = app.check(app.custom_op(scaled, elementwise=True), only=["engines"])
    (failure,) = findings.failed
    assert "compiled, out is wrong in 24 of 24 elements" in failure.words
    assert "Python gives" in failure.words


@pytest.mark.parametrize(
    "function",
    [lambda x, n=10**5: x * (n * n) / 1e10, njit(scaled), lambda x: math.log(x) + math.sqrt(x)],
    ids=["fits", "a Numba function", "raises in Python"],
)
def test_others_agree(function) -> None:
    assert not app.check(app.custom_op(function, elementwise=True, name="f"), only=["engines"]).failed
