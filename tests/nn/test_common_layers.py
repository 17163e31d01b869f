"""Dropout and one_hot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import nn, static, to_tensor
from app.errors import OperatorError
from app.graph.defaults import static_mode
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses

ONES = np.ones((200, 50), "float32")


@pytest.mark.parametrize(
    ("mode", "scale", "mean"), [("upscale_in_train", 1 / 0.75, 1.0), ("downscale_in_infer", 1.0, 0.75)]
)
def test_dropout_keeps_the_mean_and_drops_in_training_alone(mode: str, scale: float, mean: float):
    app.seed(1)
    layer = nn.Dropout(0.25, mode=mode)
    x = to_tensor(ONES, stop_gradient=False)
    out = layer(x)
    assert set(np.unique(out.numpy()).tolist()) == {0.0, np.float32(scale)}
    assert abs(out.numpy().mean() - mean) < 0.02
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.numpy())
    layer.eval()
    np.testing.assert_array_equal(layer(x).numpy(), ONES * np.float32(mean))


def test_dropout_draws_anew_each_time_and_the_same_after_the_same_seed():
    def masks() -> list[Any]:
        app.seed(3)
        return [F.dropout(to_tensor(ONES)).tolist() for _ in range(2)]

    first, second = masks()
    assert first != second
    assert masks() == [first, second]


def test_the_clone_of_a_program_for_testing_never_drops():
    main = static.Program()
    with static_mode(), static.program_guard(main, static.Program()):
        out = nn.Dropout(0.5)(static.data("x", [-1, 50]))
    result = static.Executor().run(main.clone(for_test=True), {"x": ONES}, [out.name])[0]
    np.testing.assert_array_equal(result, ONES)


def test_a_layer_flattens_all_axes_but_the_first():
    x = to_tensor(np.arange(24.0).reshape(2, 3, 4))
    assert (nn.Flatten()(x).shape, nn.Flatten(0, 1)(x).shape) == ([2, 12], [6, 4])


def test_one_hot_counts_classes_on_demand():
    assert F.one_hot(to_tensor([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert F.one_hot(to_tensor([1, 0])).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.dropout(x, 1.5), r"p is a probability, not 1\.5"),
        (lambda x: F.dropout(x, 0.5, mode="up"), "mode is 'upscale_in_train' or 'downscale_in_infer'"),
        *(
            (lambda x, label=label: F.one_hot(to_tensor([0, label]), 2), r"labels must be in 0\.\.1")
            for label in (-1, 2)
        ),
    ],
)
def test_wrong_arguments_are_errors(call: Callable[[Any], Any], message: str):
    with pytest.raises(OperatorError, match=message):
        call(app.ones([3, 3]))
