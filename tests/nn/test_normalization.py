"""Normalisation: the numbers, what training leaves behind, and what a Program for testing does."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app import nn, static, to_tensor
from app.autograd import gradcheck
from app.errors import ShapeError
from app.graph.defaults import static_mode
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses

X = np.random.default_rng(0).normal(2.0, 3.0, (6, 3)).astype("float32")
PICTURES = np.random.default_rng(1).normal(0, 1, (4, 3, 5)).astype("float32")


def test_a_batch_is_normalised_by_its_own_figures_and_the_running_ones_follow():
    layer = nn.BatchNorm1D(3)
    found = layer(to_tensor(X))
    np.testing.assert_allclose(found.numpy(), (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer._mean.numpy(), 0.1 * X.mean(0), rtol=1e-5)
    np.testing.assert_allclose(layer._variance.numpy(), 0.9 + 0.1 * X.var(0), rtol=1e-5)


def test_in_use_the_running_figures_count_and_stay():
    layer = nn.BatchNorm1D(3)
    layer(to_tensor(X))
    mean, variance = layer._mean.numpy(), layer._variance.numpy()
    layer.eval()
    found = layer(to_tensor(X[:2]))
    np.testing.assert_allclose(found.numpy(), (X[:2] - mean) / np.sqrt(variance + 1e-5), rtol=1e-5)
    np.testing.assert_array_equal(layer._mean.numpy(), mean)


def test_the_state_has_the_running_figures_and_training_does_not_change_them_by_gradients():
    layer = nn.BatchNorm1D(3)
    assert list(layer.state_dict()) == ["weight", "bias", "_mean", "_variance"]
    (layer(to_tensor(X)) ** 2).sum().backward()
    assert [p.grad is None for p in layer.parameters()] == [False, False, True, True]


@pytest.mark.parametrize("data_format", ["NCL", "NLC"])
def test_channels_can_come_before_or_after_the_places(data_format: str):
    layer = nn.BatchNorm1D(3, data_format=data_format)
    x = PICTURES if data_format == "NCL" else PICTURES.transpose(0, 2, 1).copy()
    axes = (0, 2) if data_format == "NCL" else (0, 1)
    expected = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(layer(to_tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_program_trains_like_layers_and_its_clone_for_testing_does_not():
    main, startup = static.Program(), static.Program()
    with static_mode(), static.program_guard(main, startup):
        layer = nn.BatchNorm1D(3)
        out = layer(static.data("x", [-1, 3]))
        test = main.clone(for_test=True)
        app.optimizer.SGD(0.1).minimize(app.mean(out * out * out))
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    (found,) = executor.run(main, {"x": X}, [out], scope=scope)
    eager = nn.BatchNorm1D(3)
    np.testing.assert_allclose(found, eager(to_tensor(X)).numpy(), rtol=1e-5)
    np.testing.assert_allclose(scope.values[layer._mean.name], eager._mean.numpy(), rtol=1e-6)
    before = scope.values[layer._mean.name].copy()
    eager.eval()
    eager.weight.set_value(scope.values[layer.weight.name])
    eager.bias.set_value(scope.values[layer.bias.name])
    (used,) = executor.run(test, {"x": X}, [out], scope=scope)
    np.testing.assert_allclose(used, eager(to_tensor(X)).numpy(), rtol=1e-5)
    np.testing.assert_array_equal(scope.values[layer._mean.name], before)


@pytest.mark.parametrize("sizes", [3, [3], [5, 3]])
def test_an_example_is_normalised_over_its_last_axes(sizes: object):
    x = PICTURES.transpose(0, 2, 1).astype("float64")
    axes = (1, 2) if sizes == [5, 3] else (2,)
    expected = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.LayerNorm(sizes).double()(to_tensor(x)).numpy(), expected, rtol=1e-9)


def test_gradients():
    x = to_tensor(X.astype("float64"), stop_gradient=False)
    scale, shift = (to_tensor(np.array(v), stop_gradient=False) for v in ([1.5, -0.5, 2.0], [0.1, 0.2, 0.3]))

    def batch(x: app.Tensor, scale: app.Tensor, shift: app.Tensor) -> app.Tensor:
        seen = app.zeros([3], "float64"), app.ones([3], "float64")
        return F.batch_norm(x, *seen, scale, shift, training=True)

    assert gradcheck(batch, [x, scale, shift])
    assert gradcheck(lambda x, scale, shift: F.layer_norm(x, 3, scale, shift), [x, scale, shift])


def test_what_does_not_fit_is_told():
    with pytest.raises(ShapeError, match=r"batch_norm: expected 4 channels, found an input of shape \[6, 3\]"):
        nn.BatchNorm1D(4)(to_tensor(X))
    with pytest.raises(ShapeError, match=r"an input of shape \[6, 3\] does not end in \[4\]"):
        nn.LayerNorm(4)(to_tensor(X))
    with pytest.raises(ShapeError, match="normalized_shape needs at least one size"):
        F.layer_norm(to_tensor(X), [])
    with pytest.raises(ShapeError, match=r"batch_norm: weight has shape \[2\], expected \[3\]"):
        F.batch_norm(to_tensor(X), None, None, app.ones([2]), training=True)
    with pytest.raises(ShapeError, match="prelu: 2 weights for the channels of an input of shape"):
        F.prelu(to_tensor(X), app.ones([2]))
