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
    return programs.read_answers()


def check(seed: int) -> None:
    """A program gives what Paddle gave for it, run eagerly and traced."""
    check_eager(seed)
    check_traced(seed)


def check_eager(seed: int) -> None:
    """A program gives what Paddle gave for it."""
    found = programs.answer(paddle, programs.program_of(seed), programs.inputs_of(seed))
    source = programs.program_of(seed)
    np.testing.assert_allclose(found, recorded()[seed], rtol=1e-5, atol=1e-7, err_msg=source)


def traced(function: Any, backend: str = "reference") -> Any:
    batches = [app.static.InputSpec([None, 3], "float64")] * 2
    return app.jit.to_static(function, input_spec=batches, backend=backend)


def check_traced(seed: int) -> bool:
    """A program that is traced for batches of any size gives the same, or is refused for its shapes: then False."""
    source, given = programs.program_of(seed), programs.inputs_of(seed)
    try:
        found = programs.answer(paddle, source, given, change=traced)
    except app.errors.ShapeError:
        return False
    np.testing.assert_allclose(found, programs.answer(paddle, source, given), rtol=1e-9, atol=1e-9, err_msg=source)
    return True


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_programs_give_what_paddle_gives(first: int):
    for seed in range(first, first + 10):
        check_eager(seed)


@pytest.mark.parametrize("first", range(130, 190, 10))
def test_traced_programs_give_what_eager_ones_give(first: int):
    assert sum(check_traced(seed) for seed in range(first, first + 10)) >= 7


def test_names_shapes_and_first_values_of_parameters_are_those_of_paddle():
    assert list(paddle.nn.PReLU(3).state_dict()) == ["_weight"]
    norm = paddle.nn.LayerNorm([2, 3])
    assert {name: value.shape for name, value in norm.state_dict().items()} == {"weight": [6], "bias": [6]}
    x = paddle.rand([4, 2, 3])
    assert norm(x).numpy() == pytest.approx(app.nn.LayerNorm([2, 3])(x).numpy())
    assert paddle.nn.PReLU(3)(-x.transpose([0, 2, 1])).numpy() == pytest.approx(-0.25 * x.numpy().transpose(0, 2, 1))
    weight = paddle.nn.Embedding(200, 300).weight.numpy()
    assert np.abs(weight).max() == pytest.approx(np.sqrt(6 / 500), rel=1e-3)


def test_state_dicts_of_the_framework_are_as_before():
    assert list(app.nn.PReLU(3).state_dict()) == ["weight"]
    assert app.nn.LayerNorm([2, 3]).weight.shape == [2, 3]
    assert app.nn.Embedding(200, 300).weight.numpy().std() == pytest.approx(1, abs=0.02)
