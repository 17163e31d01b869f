"""Training with traced layers and steps gives the losses, weights and random numbers of eager training."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.data import Batches
from app.jit import to_static
from app.nn import functional

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((23, 8)).astype("float32")
Y = RANDOM.integers(0, 3, 23)


class Block(app.nn.Layer):
    def __init__(self, p):
        super().__init__()
        self.linear, self.norm, self.drop = app.nn.Linear(12, 12), app.nn.BatchNorm1D(12), app.nn.Dropout(p)
        self.register_buffer("seen", app.to_tensor(0.0))

    def forward(self, x):
        h = self.drop(functional.relu(self.norm(self.linear(x))))
        self.seen = self.seen + h.mean().detach()
        return h


class Net(app.nn.Layer):
    def __init__(self, p=0.3):
        super().__init__()
        self.first, self.last = app.nn.Linear(8, 12), app.nn.Linear(12, 3)
        self.blocks = app.nn.Sequential(Block(p), Block(p))

    def forward(self, x):
        return self.last(self.blocks(app.tanh(self.first(x))))


def step_of(net, optimizer):
    def step(x, y):
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return step


def trained(form, kind, settings):
    """The losses of two epochs, the outputs in evaluation, the state, and what was traced."""
    app.seed(3)
    net = Net()
    optimizer = kind(0.05, parameters=net.parameters(), **settings)
    if form == "layer":
        to_static(net, backend="reference")
    step = step_of(net, optimizer)
    if form == "step":
        step = to_static(step, backend="reference")
    batches = Batches(X, Y, np.arange(23)[::-1], 10)
    app.seed(5)
    losses = []
    for _ in range(2):
        losses += [float(step(app.to_tensor(x), app.to_tensor(y))) for x, y in batches]
    net.eval()
    return losses, net(app.to_tensor(X)).numpy(), net.state_dict(), step if form == "step" else net.forward


SETTINGS = {
    "SGD": {},
    "Momentum": {"weight_decay": 0.01},
    "Adam": {"grad_clip": app.nn.ClipGradByGlobalNorm(1.0)},
    "AdamW": {},
}


@pytest.mark.parametrize("form", ["layer", "step"])
@pytest.mark.parametrize("kind", SETTINGS)
def test_a_traced_layer_and_a_traced_step_train_as_eager_ones(kind, form):
    optimizer, settings = getattr(app.optimizer, kind), SETTINGS[kind]
    eager, static = (trained(f, optimizer, settings) for f in ("eager", form))
    np.testing.assert_allclose(static[0], eager[0], rtol=1e-5)
    np.testing.assert_allclose(static[1], eager[1], rtol=1e-3, atol=1e-5)
    for name in eager[2]:
        np.testing.assert_allclose(static[2][name].numpy(), eager[2][name].numpy(), rtol=1e-3, atol=1e-5, err_msg=name)
    traces = {"layer": 2, "step": 1}  # for training and evaluation, and none for the last batch, which is smaller
    assert len(static[3].traces) == traces[form]


@app.custom_op
def tenfold(x):
    return x * 1


@tenfold.backward
def _(x, dout):
    return dout * 10


@pytest.mark.slow
@pytest.mark.parametrize("form", ["step", pytest.param("layer", marks=pytest.mark.soak)])
def test_a_custom_operator_trains_the_same_when_compiled(form):
    found = []
    for wanted in ("eager", form):
        w = app.to_tensor(np.full((8, 3), 0.1, "float32"), stop_gradient=False)
        optimizer = app.optimizer.SGD(0.01, parameters=[w])

        def net(x, w=w):
            return (tenfold(w) * tenfold(x).sum()).mean()

        def step(x, net=net, optimizer=optimizer):
            loss = net(x)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        if wanted == "layer":
            net = to_static(net)
        step = to_static(step) if wanted == "step" else lambda x, net=net, step=step: step(x, net)
        found.append(([float(step(app.to_tensor(x))) for x in (X[:10], X[10:])], w.numpy()))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-4, atol=1e-6)


def test_the_learning_rate_is_that_of_each_call():
    schedule = app.optimizer.lr.StepDecay(0.5, 1, 0.1)
    w = app.create_parameter([1], default_initializer=app.nn.initializer.Constant(0.0))
    optimizer = app.optimizer.SGD(schedule, parameters=[w])

    @to_static(backend="reference")
    def step(x):
        (w * x).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    step(app.to_tensor([1.0]))
    schedule.step()
    step(app.to_tensor([1.0]))
    np.testing.assert_allclose(w.numpy(), [-0.55])
    assert len(step.traces) == 1


def test_gradients_accumulate_until_they_are_cleared():
    w = app.create_parameter([2])

    @to_static(backend="reference")
    def accumulate(x):
        (w * x).sum().backward()

    for _ in range(3):
        accumulate(app.to_tensor([1.0, 2.0]))
    np.testing.assert_allclose(w.grad.numpy(), [3.0, 6.0])
    assert len(accumulate.traces) == 2  # without a gradient at first, and with one


def test_a_traced_step_takes_the_gradients_of_an_eager_backward_pass():
    w = app.create_parameter([2], default_initializer=app.nn.initializer.Constant(0.0))
    optimizer = app.optimizer.SGD(1.0, parameters=[w])
    update = to_static(lambda: optimizer.step(), backend="reference")
    for value in (1.0, 2.0):
        (w * value).sum().backward()
        update()
        w.clear_grad()
    np.testing.assert_allclose(w.numpy(), [-3.0, -3.0])


def test_two_optimisers_in_one_step():
    def trained_pair(wrap):
        a, b = (app.to_tensor([value, value], stop_gradient=False) for value in (1.0, 2.0))
        optimizers = [app.optimizer.SGD(0.1, parameters=[weights]) for weights in (a, b)]

        def step(x):
            for updated in optimizers:
                (a * b * x).sum().backward()
                updated.step()
                for optimizer in optimizers:
                    optimizer.clear_grad()

        for _ in range(3):
            wrap(step)(app.to_tensor([1.0, 2.0]))
        return a.numpy(), b.numpy()

    eager = trained_pair(lambda step: step)
    np.testing.assert_allclose(trained_pair(lambda step: to_static(step, backend="reference")), eager, rtol=1e-6)


def test_a_layer_is_traced_for_training_and_for_evaluation():
    layer = to_static(app.nn.Dropout(0.5), backend="reference")
    x = app.ones([100])
    assert set(np.unique(layer(x).numpy())) == {0.0, 2.0}
    layer.eval()
    np.testing.assert_array_equal(layer(x).numpy(), x.numpy())
    layer.train()
    assert not np.array_equal(layer(x).numpy(), layer(x).numpy())  # drawn anew at each call
    assert len(layer.forward.traces) == 2


def test_the_output_has_no_gradient_under_no_grad_or_with_frozen_parameters():
    net = to_static(app.nn.Linear(2, 2), backend="reference")
    with app.no_grad():
        assert net(app.ones([1, 2])).stop_gradient
    assert not net(app.ones([1, 2])).stop_gradient
    for parameter in net.parameters():
        parameter.stop_gradient = True
    assert net(app.ones([1, 2])).stop_gradient
