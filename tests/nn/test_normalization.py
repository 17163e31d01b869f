"""Normalization: the numbers, what training leaves behind, and what a Program for testing does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import nn, static, to_tensor
from app.autograd import gradcheck
from app.errors import ShapeError
from app.graph.defaults import static_mode
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses

X = np.random.default_rng(0).normal(2.0, 3.0, (6, 3)).astype("float32")
SEQUENCES = np.random.default_rng(1).normal(0, 1, (4, 3, 5)).astype("float32")
IMAGES = np.random.default_rng(2).normal(1.0, 3.0, (4, 3, 5, 2)).astype("float32")


def normalized(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


@pytest.mark.parametrize(
    ("layer", "x", "axes"),
    [
        (lambda: nn.BatchNorm1D(3), X, (0,)),
        (lambda: nn.BatchNorm1D(3), SEQUENCES, (0, 2)),
        (lambda: nn.BatchNorm1D(3, data_format="NLC"), SEQUENCES.transpose(0, 2, 1), (0, 1)),
        (lambda: nn.BatchNorm2D(3), IMAGES, (0, 2, 3)),
    ],
)
def test_batch_norm_uses_batch_statistics_in_training_and_running_ones_in_evaluation(
    layer: Callable[[], Any], x: np.ndarray, axes: tuple[int, ...]
):
    norm = layer()
    np.testing.assert_allclose(norm(to_tensor(x)).numpy(), normalized(x, axes), rtol=1e-4, atol=1e-5)
    mean, variance = 0.1 * x.mean(axes), 0.9 + 0.1 * x.var(axes)
    np.testing.assert_allclose(norm._mean.numpy(), mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(norm._variance.numpy(), variance, rtol=1e-4)
    norm.eval()
    shape = [1 if axis in axes else 3 for axis in range(x.ndim)]
    expected = (x[:2] - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-5)
    np.testing.assert_allclose(norm(to_tensor(x[:2])).numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm._mean.numpy(), mean, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("always_of_the_batch", [True, False])
def test_use_global_stats_chooses_the_statistics_in_training_and_in_evaluation(always_of_the_batch: bool):
    for training in (True, False):
        norm = nn.BatchNorm1D(3, use_global_stats=not always_of_the_batch)
        norm.training = training
        expected = normalized(X, (0,)) if always_of_the_batch else X / np.sqrt(1 + 1e-5)
        np.testing.assert_allclose(norm(to_tensor(X)).numpy(), expected, rtol=1e-4, atol=1e-5)
        assert norm._mean.numpy().any() == always_of_the_batch


def test_running_statistics_are_state_without_gradients():
    layer = nn.BatchNorm1D(3)
    assert list(layer.state_dict()) == ["weight", "bias", "_mean", "_variance"]
    (layer(to_tensor(X)) ** 2).sum().backward()
    assert [p.grad is None for p in layer.parameters()] == [False, False, True, True]


def test_a_program_trains_like_layers_and_its_clone_for_testing_does_not():
    main, startup = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        layer = nn.BatchNorm1D(3)
        out = layer(static.data("x", [-1, 3]))
        test = main.clone(for_test=True)
        app.optimizer.SGD(0.1).minimize(app.mean(out * out * out))
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    (trained,) = executor.run(main, {"x": X}, [out], scope=scope)
    eager = nn.BatchNorm1D(3)
    np.testing.assert_allclose(trained, eager(to_tensor(X)).numpy(), rtol=1e-5)
    np.testing.assert_allclose(scope.values[layer._mean.name], eager._mean.numpy(), rtol=1e-6)
    before = scope.values[layer._mean.name].copy()
    eager.eval()
    eager.weight.set_value(scope.values[layer.weight.name])
    eager.bias.set_value(scope.values[layer.bias.name])
    (used,) = executor.run(test, {"x": X}, [out], scope=scope)
    np.testing.assert_allclose(used, eager(to_tensor(X)).numpy(), rtol=1e-5)
    np.testing.assert_array_equal(scope.values[layer._mean.name], before)


def test_gradients():
    x = to_tensor(X.astype("float64"), stop_gradient=False)
    scale, shift = (to_tensor(np.array(v), stop_gradient=False) for v in ([1.5, -0.5, 2.0], [0.1, 0.2, 0.3]))

    def batch(x: app.Tensor, scale: app.Tensor, shift: app.Tensor) -> app.Tensor:
        seen = app.zeros([3], "float64"), app.ones([3], "float64")
        return F.batch_norm(x, *seen, scale, shift, training=True)

    assert gradcheck(batch, [x, scale, shift])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nn.BatchNorm1D(4)(x), r"batch_norm: expected 4 channels, found an input of shape \[6, 3\]"),
        (
            lambda x: app.jit.to_static(nn.BatchNorm1D(3), [app.static.InputSpec([None, None])])(x),
            r"found an input of shape \[-1, -1\], where the number of channels is open: give it",
        ),
        (lambda x: nn.BatchNorm2D(3)(x), r"expected images of four axes, found shape \[6, 3\]"),
        (
            lambda x: F.batch_norm(x, None, None, app.ones([2]), training=True),
            r"weight has shape \[2\], expected \[3\]",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_errors(call: Callable[[Any], Any], message: str):
    with pytest.raises(ShapeError, match=message):
        call(to_tensor(X))
