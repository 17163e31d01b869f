"""A batch gets the threads that it is worth: meeting takes longer than the work of a few rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from both_engines import compiled
from numba import njit

import app
from app import static
from app.custom import custom_op
from app.engine.compiled import threads
from app.engine.compiled.lower import lower
from app.engine.compiled.passes import PASSES
from app.engine.compiled.schedule import schedule
from app.engine.compiled.steps import Lowered
from app.engine.compiled.threads import Worth
from app.engine.compiled.trial import why_not
from app.graph.passes import optimise

FOR_EACH = threads.FOR_EACH  # before the tests of this room set it


@pytest.fixture(autouse=True)
def _as_it_is(_all_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FOR_EACH", FOR_EACH)


@custom_op(row_by_row=True)
@njit
def from_the_first(x: Any) -> Any:
    """Not proven to work on single numbers, as it does not."""
    differences = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            differences[i, j] = x[i, j] - x[i, 0]
    return differences


def network(activation: Callable[[Any], Any], width: int = 100) -> Lowered:
    x = static.data("x", [None, 784])
    loss = app.mean(static.nn.fc(activation(static.nn.fc(x, width)), 10))
    low = lower(optimise(static.default_main_program(), [loss.name], PASSES), [loss.name], why_not)
    schedule(low)
    return low


def test_more_rows_and_wider_networks_get_more_threads():
    worth = Worth(network(app.relu).steps)
    counts = [worth.threads(n, 8) for n in range(0, 4096, 17)]
    assert counts == sorted(counts)
    assert {counts[0], counts[-1]} == {1, 8}
    assert (worth.threads(1, 2), worth.threads(256, 2)) == (1, 2)
    assert Worth(network(app.relu, 4096).steps).threads(4, 2) == 2


@pytest.mark.slow
def test_the_cost_of_pooling_is_that_of_all_elements_of_its_windows():
    y = app.nn.functional.max_pool2d(static.data("x", [None, 2, 8, 9], "float32"), (2, 3), (2, 3))
    (step,) = compiled(y).lowered.steps
    assert step.operations(5) == 5 * 2 * (4 * 3) * (2 * 3)


@pytest.mark.slow
def test_a_called_function_of_unknown_cost_gets_all_threads():
    assert Worth(network(from_the_first).steps).threads(1, 2) == 2
