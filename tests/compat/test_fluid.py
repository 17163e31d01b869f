"""The façade `paddle` is the framework, and `paddle.fluid` has Paddle 1's names, parameters and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import app
from app.compat import fluid, paddle
from app.graph import Variable, defaults, names
from app.tensor import Tensor

layers = fluid.layers

A = np.array([[0.5, -2.0, 1.5], [3.0, 0.25, -1.0]], "float32")
P = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], "float32")
L = np.array([[2], [1]], "int64")

CALLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "mean": (lambda x: layers.mean(x), [A.mean()]),
    "reduce_sum": (lambda x: layers.reduce_sum(x), [A.sum()]),
    "reduce_sum dim": (lambda x: layers.reduce_sum(input=x, dim=1), A.sum(axis=1)),
    "reduce_mean": (lambda x: layers.reduce_mean(x, dim=[0], keep_dim=True), A.mean(axis=0, keepdims=True)),
    "relu": (lambda x: layers.relu(x), np.maximum(A, 0)),
    "scale": (lambda x: layers.scale(x, scale=2.0, bias=1.0), 2 * A + 1),
    "elementwise_sub": (lambda x: layers.elementwise_sub(x, x * 2.0), -A),
    "softmax": (lambda x: layers.softmax(x), np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)),
    "reshape": (lambda x: layers.reshape(x, shape=[-1, 2]), A.reshape(3, 2)),
    "concat": (lambda x: layers.concat(input=[x, x], axis=1), np.hstack([A, A])),
    "square_error_cost": (lambda x: layers.square_error_cost(x, x * 3.0), (2 * A) ** 2),
}


@pytest.fixture(autouse=True)
def _own_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(defaults, "_static", None)
    with names.guard(), fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        yield


def run(fetch: Any, **feed: np.ndarray) -> np.ndarray:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=[fetch])[0]


def test_data_of_layers_puts_an_axis_for_the_batch_before_its_shape():
    with fluid.program_guard(fluid.Program()), fluid.scope_guard(fluid.core.Scope()):
        assert layers.data(name="image", shape=[784]).shape == (-1, 784)
        assert layers.data(name="whole", shape=[8, 784], append_batch_size=False).shape == (8, 784)
        assert fluid.data(name="as_it_is", shape=[8, 784]).shape == (8, 784)


def test_paddle_is_the_framework():
    for name in app.__all__:
        if name not in ("nn", "autograd"):
            assert getattr(paddle, name) is getattr(app, name)
    assert paddle.nn.Linear is app.nn.Linear
    assert paddle.nn.loss.CrossEntropyLoss is app.nn.CrossEntropyLoss
    assert paddle.autograd.PyLayer is app.autograd.PyLayer


@pytest.mark.parametrize("name", CALLS)
def test_a_layer_gives_the_same_for_tensors_and_in_a_program(name: str):
    call, expected = CALLS[name]
    with fluid.dygraph.guard():
        eager = call(fluid.dygraph.to_variable(A))
    out = call(fluid.data("x", A.shape, A.dtype))
    assert isinstance(eager, Tensor)
    assert isinstance(out, Variable)
    for value in (eager.numpy(), run(out, x=A)):
        assert value.shape == np.shape(expected)
        np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_losses_of_probabilities_and_of_scores():
    p, label = fluid.data("p", [None, 3]), fluid.data("label", [None, 1], "int64")
    expected = -np.log(np.take_along_axis(P, L, axis=1))
    np.testing.assert_allclose(run(layers.cross_entropy(input=p, label=label), p=P, label=L), expected, rtol=1e-5)
    loss = layers.softmax_with_cross_entropy(layers.log(p), label)
    np.testing.assert_allclose(run(loss, p=P, label=L), expected, rtol=1e-5)
    assert run(layers.accuracy(input=p, label=label), p=P, label=L).tolist() == [1.0]


def test_created_values_are_variables_outside_of_dygraph():
    created = [layers.fill_constant([2], "float32", 3.0), layers.ones([1], "int64")]
    assert all(isinstance(value, Variable) for value in created)
    with fluid.dygraph.guard():
        assert layers.zeros([2], "float32").tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", [n for n in vars(fluid.optimizer) if n.endswith("Optimizer")])
def test_an_optimizer_makes_a_loss_smaller(name: str):
    settings = {"momentum": 0.9} if "Momentum" in name else {}
    loss = layers.mean(layers.square(layers.fc(input=fluid.data("x", [None, 3]), size=2)))
    getattr(fluid.optimizer, name)(learning_rate=0.01, **settings).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    losses = [float(exe.run(feed={"x": A}, fetch_list=[loss])[0]) for _ in range(20)]
    assert losses[-1] < losses[0]


def test_a_layer_is_trained_in_the_dynamic_mode():
    with fluid.dygraph.guard():
        layer = fluid.dygraph.Linear(3, 2, act="relu", param_attr=fluid.initializer.Constant(0.5))
        adam = fluid.optimizer.AdamOptimizer(learning_rate=0.1, parameter_list=layer.parameters())
        loss = layers.reduce_mean(layer(fluid.dygraph.to_variable(A)))
        assert loss.shape == [1]
        loss.backward()
        adam.minimize(loss)
        np.testing.assert_allclose(layer.weight.numpy()[1:], [[0.4, 0.4], [0.6, 0.6]], atol=1e-3)


def test_a_fetched_value_of_one_element_is_a_number():
    value = run(layers.mean(fluid.data("x", [None, 3])), x=A)
    assert (value.shape, f"{float(value):.4f}", int(value)) == ((1,), f"{A.mean():.4f}", 0)
