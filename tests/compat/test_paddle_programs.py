"""Random programs in Paddle's words: values and gradients are those that Paddle gave, run eagerly and traced."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import paddle_programs as programs
import pytest

import app
import app.compat.paddle as paddle


@cache
def recorded() -> list[Any]:
    return programs.read_predictions()


@cache
def seeds() -> list[int]:
    return programs.seeds()


def check(number: int) -> None:
    """A program gives what Paddle gave for it, run eagerly and traced."""
    check_eager(seeds()[number])
    check_traced(seeds()[number])


def check_eager(seed: int) -> None:
    """A program gives what Paddle gave for it."""
    actual = programs.answer(paddle, programs.program_of(seed), programs.inputs_of(seed))
    source = programs.program_of(seed)
    np.testing.assert_allclose(actual, recorded()[seed], rtol=1e-5, atol=1e-7, err_msg=source)


def traced(function: Any, backend: str = "reference") -> Any:
    batches = [app.static.InputSpec([None, 3], "float64")] * 2
    return app.jit.to_static(function, input_spec=batches, backend=backend)


def check_traced(seed: int) -> bool:
    """A program that is traced for batches of any size gives the same, or is refused for its shapes: then False."""
    source, inputs = programs.program_of(seed), programs.inputs_of(seed)
    try:
        actual = programs.answer(paddle, source, inputs, change=traced)
    except app.errors.ShapeError:
        return False
    np.testing.assert_allclose(actual, programs.answer(paddle, source, inputs), rtol=1e-9, atol=1e-9, err_msg=source)
    return True


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_programs_give_what_paddle_gives(first: int):
    for seed in seeds()[first : first + 10]:
        check_eager(seed)


@pytest.mark.parametrize("first", range(130, 190, 10))
def test_traced_programs_give_what_eager_ones_give(first: int):
    assert sum(check_traced(seed) for seed in seeds()[first : first + 10]) >= 7
