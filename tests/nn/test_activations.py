"""Activation functions against formulas written out in NumPy, as functions and as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import app
from app import nn, static, to_tensor
from app.autograd import gradcheck
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses

X = np.array([[-3.3, 0.45, 2.1, -0.2], [0.7, -0.6, 6.9, -7.5]])

CASES: list[tuple[Callable[[Any], Any], nn.Layer, np.ndarray]] = [
    (F.relu, nn.ReLU(), X * (X > 0)),
    (F.relu6, nn.ReLU6(), np.clip(X, 0, 6)),
    (lambda x: F.leaky_relu(x, 0.2), nn.LeakyReLU(0.2), np.where(X > 0, X, 0.2 * X)),
    (F.sigmoid, nn.Sigmoid(), special.expit(X)),
    (F.log_sigmoid, nn.LogSigmoid(), np.log(special.expit(X))),
    (F.tanh, nn.Tanh(), np.tanh(X)),
    (F.softmax, nn.Softmax(), special.softmax(X, axis=-1)),
    (lambda x: F.softmax(x, 0), nn.Softmax(0), special.softmax(X, axis=0)),
    (F.log_softmax, nn.LogSoftmax(), special.log_softmax(X, axis=-1)),
    (F.gelu, nn.GELU(), X * special.ndtr(X)),
    (
        lambda x: F.gelu(x, approximate=True),
        nn.GELU(True),
        0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3))),
    ),
    (F.silu, nn.Silu(), X * special.expit(X)),
    (F.swish, nn.Swish(), X * special.expit(X)),
    (F.mish, nn.Mish(), X * np.tanh(np.log1p(np.exp(X)))),
    (F.softplus, nn.Softplus(), np.log1p(np.exp(X))),
    (lambda x: F.softplus(x, 2.0), nn.Softplus(2.0), np.log1p(np.exp(2 * X)) / 2),
    (F.softsign, nn.Softsign(), X / (1 + np.abs(X))),
    (lambda x: F.elu(x, 0.5), nn.ELU(0.5), np.where(X > 0, X, 0.5 * (np.exp(X) - 1))),
    (lambda x: F.celu(x, 2.0), nn.CELU(2.0), np.where(X > 0, X, 2.0 * (np.exp(X / 2.0) - 1))),
    (F.selu, nn.SELU(), 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * (np.exp(X) - 1))),
    (lambda x: F.hardtanh(x, -0.5, 2), nn.Hardtanh(-0.5, 2), np.clip(X, -0.5, 2)),
    (F.hardsigmoid, nn.Hardsigmoid(), np.clip(X * 0.1666667 + 0.5, 0, 1)),
    (F.hardswish, nn.Hardswish(), X * np.clip(X + 3, 0, 6) / 6),
    (F.hardshrink, nn.Hardshrink(), np.where(np.abs(X) > 0.5, X, 0)),
    (F.softshrink, nn.Softshrink(), np.sign(X) * np.maximum(np.abs(X) - 0.5, 0)),
    (F.tanhshrink, nn.Tanhshrink(), X - np.tanh(X)),
    (F.thresholded_relu, nn.ThresholdedReLU(), np.where(X > 1, X, 0)),
    (F.glu, nn.GLU(), X[:, :2] * special.expit(X[:, 2:])),
]


@pytest.mark.parametrize(("function", "layer", "expected"), CASES, ids=lambda v: repr(v)[:20])
def test_functions_and_layers_follow_the_formula(function: Callable[[Any], Any], layer: nn.Layer, expected: np.ndarray):
    x = to_tensor(X, stop_gradient=False)
    np.testing.assert_allclose(function(x).numpy(), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-7, atol=1e-15)
    assert gradcheck(function, x)


@pytest.mark.parametrize("function", [function for function, _, _ in CASES], ids=lambda v: repr(v)[:20])
def test_nan_stays_nan(function: Callable[[Any], Any]):
    assert np.isnan(function(to_tensor(np.full([2, 4], np.nan))).numpy()).all()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (F.relu6, [0, 0, 0, 1, 1, 0]),
        (F.hardtanh, [0, 0, 1, 0, 0, 0]),
        (lambda x: F.hardsigmoid(x, slope=0.25), [0, 0.25, 0.25, 0.25, 0, 0]),
        (F.hardswish, [0, 1 / 6, 1 / 2, 5 / 6, 1, 1]),
    ],
)
def test_the_gradient_is_0_where_a_clipped_line_has_a_corner(function: Callable[[Any], Any], expected: list[float]):
    x = to_tensor([-3.0, -1.0, 0.0, 1.0, 3.0, 6.0], stop_gradient=False)
    function(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6, atol=1e-7)


def test_softmax_gives_no_probability_of_zero_and_takes_a_type():
    share = F.softmax(to_tensor([[200.0, 0.0]], stop_gradient=False))
    loss = F.cross_entropy(share, to_tensor([1]), use_softmax=False)
    np.testing.assert_allclose(loss.item(), 64.0, rtol=1e-5)
    assert F.softmax(to_tensor([1, 2]), dtype="float64").dtype == "float64"


def test_layers_print_their_settings_which_can_be_changed():
    layer = nn.LeakyReLU(negative_slope=0.2, name="act")
    assert repr(layer) == "LeakyReLU(negative_slope=0.2)"
    assert layer.full_name() == "act_0"
    layer.negative_slope = 0.5
    assert layer(to_tensor([-2.0])).tolist() == [-1.0]
    assert repr(nn.Softplus()) == "Softplus(beta=1, threshold=20)"
    with pytest.raises(TypeError, match="slope"):
        nn.LeakyReLU(slope=0.2)


@pytest.mark.parametrize("engine", [None, "reference", pytest.param("compiled", marks=pytest.mark.soak)])
def test_masked_scores_have_no_probability_and_no_gradient(engine: str | None):
    x = np.array([[-np.inf, 0.0, 1.0], [-np.inf, -np.inf, 2.0]], "float32")
    if engine is None:
        scores = to_tensor(x, stop_gradient=False)
        share = F.softmax(scores)
        results = [share.numpy(), app.grad((share * share).sum(), scores)[0].numpy()]
    else:
        scores = static.data("x", [None, 3])
        scores.stop_gradient = False
        share = F.softmax(scores)
        gradients = static.gradients((share * share).sum(), scores)
        results = static.Executor(engine=engine).run(feed={"x": x}, fetch_list=[share, *gradients])
    for each, masked in zip(results, (special.softmax(x, axis=1), None), strict=True):
        assert each[np.isinf(x)].tolist() == [0, 0, 0]
        if masked is not None:
            np.testing.assert_allclose(each, masked, rtol=1e-6)
