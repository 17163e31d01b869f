"""Derived gradients of functions on arrays that are made at random, and the derivatives of these, against differences.

`OPSMITH_EXAMPLES=600 pytest tests/derivative/test_array_gradients_at_random.py` tries as many functions.
Run as a program (`PYTHONPATH=.:tests python ... 0 600`), it counts them, by the reasons why some are refused.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from derivative.array_programs import HEAD, arguments_for, program
from derivative.array_slopes import (
    central_differences,
    copied,
    gradient_arguments,
    largest_difference,
    listed,
    weights_for,
)
from derivative.broadcast_programs import Writer, stretched_arguments
from derivative.once_wrong import ONCE_WRONG
from modules_of_text import module_of_text

from app.derivative.arrays import derive
from app.errors import AppError

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", "8"))
GROUPS = 2
NEAR = 1e-5
LOSS = """    loss = 0.0
    for i in range(n):
        loss = loss * c + y[i, 0]
        if loss > c:
            loss *= c
    return loss
"""
AGREES = "agrees"
INVALID = "is no program"
RAISED = re.compile(r"\S+:\d+: ")
"""What a derived function says of arrays for which it would not be right."""


@contextmanager
def poisoned() -> Iterator[None]:
    """Inside the block, NumPy's uninitialised arrays are full of NaN."""
    empty, like = np.empty, np.empty_like

    def filled(array: np.ndarray) -> np.ndarray:
        array.fill(np.nan if array.dtype.kind == "f" else 1 << 40 if array.dtype.kind in "iu" else 1)
        return array

    np.empty, np.empty_like = (lambda *a, **k: filled(empty(*a, **k))), (lambda *a, **k: filled(like(*a, **k)))
    try:
        yield
    finally:
        np.empty, np.empty_like = empty, like


def is_valid(function: Any, arguments: list[Any]) -> bool:
    """Whether a function runs and gives numbers; if not, it says nothing about its gradient."""
    try:
        with poisoned():
            results = listed(function(*copied(arguments)))
    except (IndexError, TypeError, UnboundLocalError, ValueError):
        return False
    return all(np.isfinite(y).all() for y in results)


def changes_its_inputs(function: Any, arguments: list[Any]) -> bool:
    after = copied(arguments)
    function(*after)
    return any(not np.array_equal(a, b) for a, b in zip(arguments, after, strict=True))


def agreement(function: Any, arguments: list[Any], seed: int, *, compiled: bool = False) -> tuple[Any, list[Any], str]:
    """Derive a gradient and compare it; gives it with arguments for it, and why it was refused."""
    try:
        derived = derive(function, *arguments)
    except AppError as error:
        return None, [], str(error)
    weights = weights_for(function, arguments, seed)
    values = gradient_arguments(derived.function, function, arguments, weights)
    copies = copied(values)
    try:
        with poisoned():
            gradients = derived.function(*copies)
    except ValueError as error:
        if not RAISED.match(str(error)):
            raise
        return None, [], f"when called: {error}"
    assert all(np.array_equal(a, b) for a, b in zip(values, copies, strict=True)), "the gradient changes its inputs"
    expected = central_differences(function, arguments, weights)
    difference = largest_difference(gradients, expected)
    assert difference < NEAR, f"differs by {difference:.1e}:\n{derived.source}"
    if compiled:
        from numba import njit

        by_numba = listed(njit(derived.function, error_model="numpy")(*copied(values)))
        assert all(map(np.allclose, by_numba, listed(gradients))), f"compiled, it differs:\n{derived.source}"
    return derived, values, ""


def verdict(seed: int, text: str = "") -> str:
    """`agrees`, or the reason why the gradient is refused, or its derivative."""
    arguments = arguments_for(seed)
    if not text:
        text = program(seed)
        if seed % 4 == 1:  # the setting is an input, which has a gradient
            text, arguments = text.replace("c=0.6)", "c)"), [*arguments, np.array(0.6)]
        elif seed % 4 == 3:  # the result is a number, as a loss is
            text = text.replace("    return y\n", LOSS)
    function = module_of_text(text).f
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if not is_valid(function, arguments):
            return INVALID
        # only a long run compiles some
        derived, values, reason = agreement(function, arguments, seed, compiled=seed % 100 in (57, 59))
        if derived is None:
            return reason
        assert not changes_its_inputs(function, arguments), "a function that changes its inputs was derived"
        if seed % 8 < 7:  # the second derivative takes most of the time
            return AGREES
        second, _, reason = agreement(derived.function, values, seed)
        return AGREES if second is not None else f"second derivative: {reason}"


def verdict_on_stretched(seed: int) -> str:
    """The verdict on a function of arrays that broadcasting stretches, and on its gradient."""
    function, arguments = module_of_text(Writer(seed).function()).f, stretched_arguments(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if not is_valid(function, arguments):
            return INVALID
        derived, values, reason = agreement(function, arguments, seed, compiled=seed % 100 == 57)
        if derived is None:
            return reason
        second, _, reason = agreement(derived.function, values, seed)
        return AGREES if second is not None else f"second derivative: {reason}"


def check(seed: int) -> bool:
    """Whether the gradient of a program agrees with differences; False where it was refused."""
    return verdict(seed) in (AGREES, INVALID)


@pytest.mark.parametrize("group", range(GROUPS))
def test_gradients_of_random_functions_on_arrays_agree_with_differences(group: int):
    verdicts = [verdict(seed) for seed in range(group, EXAMPLES, GROUPS)]
    assert verdicts.count(AGREES) >= len(verdicts) // 3, verdicts


def test_gradients_of_arrays_that_broadcasting_stretches_agree_with_differences():
    verdicts = [verdict_on_stretched(seed) for seed in range(EXAMPLES // 2)]
    assert verdicts.count(AGREES) >= len(verdicts) // 2, verdicts


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_functions_whose_gradient_was_once_wrong_agree_with_differences(seed: int):
    assert verdict(seed, f"{HEAD}\n\n{ONCE_WRONG[seed]}") == AGREES


def reason_of(text: str) -> str:
    """A refusal without its place and its names."""
    return re.sub(r"`[^`]*`|<[^>]*>:?\d*:?|\S+\.py:\d+:?|x\.shape\S*|\w+\.shape\[\d\]|\d+", "_", text).strip()[:110]


def main(first: int, last: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        try:
            counts[reason_of(verdict(seed))] += 1
        except Exception as error:
            counts["WRONG"] += 1
            print(f"{seed}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    for reason, count in counts.most_common():
        print(f"{count:6} {reason}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
