"""Operators of Paddle are checked and trained as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app.__main__ import main
from app.testing import check_operator

paddle = pytest.importorskip("paddle", reason="Paddle is not installed (the extra `paddle`)")

import paddle_functions as operators  # noqa: E402

pytestmark = pytest.mark.slow

FILE = str(Path(__file__).parent / "paddle_functions.py")


@pytest.mark.parametrize("operator", [operators.Tanh, operators.plain], ids=["PyLayer", "function"])
def test_a_right_operator_passes_every_check(operator: Any):
    assert check_operator(operator).ok


@pytest.mark.parametrize(
    ("operator", "check", "message"),
    [
        (operators.Halved, "gradient", "backward (paddle_functions.py:"),
        (operators.Halved, "gradient", "it is half of what it should be"),
        (operators.Halved, "settings", "with factor=1.75, that of x is wrong"),
        (operators.KeptOnTheClass, "repeatable", "is computed from what the second call saved"),
    ],
)
def test_a_mistake_is_found(operator: Any, check: str, message: str):
    report = "\n".join(f"{v.state} {v.words}" for v in app.check(operator, only=[check]))
    assert report.startswith("FAILED")
    assert message in report


def test_the_command_and_an_example_call(capsys: pytest.CaptureFixture[str]):
    assert main(["check", f"{FILE}:Tanh", "--like", "tanh", "--only", "like"]) == 0
    assert "the results equal those of tanh" in capsys.readouterr().out
    x, index = paddle.arange(6, dtype="float64"), paddle.to_tensor([0, 2])
    assert check_operator(lambda x, index: paddle.gather(x, index), x, index, only=["gradient"]).ok


def test_it_runs_on_tensors_and_in_programs():
    tanh = app.custom_op(operators.Tanh)
    array = np.linspace(-2, 2, 6, dtype="float32")
    x = app.to_tensor(array, stop_gradient=False)
    tanh(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 - np.tanh(array) ** 2, rtol=1e-5, atol=1e-6)
    data = app.static.data("x", [None], "float32")
    data.stop_gradient = False
    out = tanh(data)
    (gradient,) = app.static.gradients([out], [data])
    results = app.static.Executor().run(feed={"x": array}, fetch_list=[out, gradient])
    np.testing.assert_allclose(results[1], 1 - np.tanh(array) ** 2, rtol=1e-5, atol=1e-6)


def drawing(x: Any) -> Any:
    return x * paddle.rand([1], dtype=x.dtype)


def test_a_gradient_that_runs_forward_again_is_refused_only_if_that_draws_random_numbers():
    array = np.array([0.5, -1.0])
    tanh = app.custom_op(operators.Tanh)
    kept = []  # the random state of Paddle names an address, which is another one while this holds memory
    for _ in range(5):
        x = app.to_tensor(array, stop_gradient=False)
        (slope,) = app.grad([tanh(x).sum()], [x], create_graph=True)
        (second,) = app.grad([slope.sum()], [x])
        np.testing.assert_allclose(second.numpy(), -2 * np.tanh(array) * (1 - np.tanh(array) ** 2))
        kept.append(paddle.get_rng_state())
    x = app.to_tensor(array, stop_gradient=False)
    with pytest.raises(app.errors.OperatorError, match="drawing draws random numbers, and would draw others"):
        app.grad([app.custom_op(drawing)(x).sum()], [x], create_graph=True)
