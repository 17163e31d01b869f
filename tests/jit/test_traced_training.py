"""Training with traced layers and steps gives the losses, weights and random numbers of eager training."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.data import Batches
from app.errors import ProgramError
from app.jit import to_static
from app.nn import functional

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((23, 8)).astype("float32")
Y = RANDOM.integers(0, 3, 23)


@app.custom_op
def tenfold(x):
    """An operator whose gradient no derivation would find."""
    return x * 1


@tenfold.backward
def _(x, dout):
    return dout * 10


class Block(app.nn.Layer):
    def __init__(self, p):
        super().__init__()
        self.linear, self.norm, self.drop = app.nn.Linear(12, 12), app.nn.BatchNorm1D(12), app.nn.Dropout(p)
        self.register_buffer("seen", app.to_tensor(0.0))

    def forward(self, x):
        h = self.drop(functional.relu(self.norm(self.linear(x))))
        self.seen.add_(h.mean().detach())
        return h


class Net(app.nn.Layer):
    def __init__(self, p=0.3):
        super().__init__()
        self.first, self.last = app.nn.Linear(8, 12), app.nn.Linear(12, 3)
        self.blocks = app.nn.Sequential(Block(p), Block(p))

    def forward(self, x):
        return self.last(self.blocks(tenfold(app.tanh(self.first(x)))))


def trained(form, kind, settings):
    """The losses of two epochs at falling rates, the outputs in evaluation, the state, and what was traced."""
    app.seed(3)
    net, schedule = Net(), app.optimizer.lr.StepDecay(0.05, 1, 0.1)
    optimizer = kind(schedule, parameters=net.parameters(), **settings)

    def step(x, y):
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    if form == "layer":
        to_static(net, backend="reference")
    if form == "step":
        step = to_static(step, backend="reference")
    batches = Batches(X, Y, np.arange(23)[::-1], 10)
    app.seed(5)
    losses = []
    for _ in range(2):
        losses += [float(step(app.to_tensor(x), app.to_tensor(y))) for x, y in batches]
        schedule.step()
    net.eval()
    return losses, net(app.to_tensor(X)).numpy(), net.state_dict(), step if form == "step" else net.forward


SETTINGS = {
    "SGD": {},
    "Momentum": {"weight_decay": 0.01},
    "Adam": {"grad_clip": app.nn.ClipGradByGlobalNorm(1.0)},
    "AdamW": {},
}


@pytest.mark.parametrize(("kind", "form"), [("SGD", "layer"), *((kind, "step") for kind in SETTINGS)])
def test_a_traced_layer_and_a_traced_step_train_as_eager_ones(kind, form):
    optimizer, settings = getattr(app.optimizer, kind), SETTINGS[kind]
    eager, static = (trained(f, optimizer, settings) for f in ("eager", form))
    np.testing.assert_allclose(static[0], eager[0], rtol=1e-5)
    np.testing.assert_allclose(static[1], eager[1], rtol=1e-3, atol=1e-5)
    for name in eager[2]:
        np.testing.assert_allclose(static[2][name].numpy(), eager[2][name].numpy(), rtol=1e-3, atol=1e-5, err_msg=name)
    traces = {"layer": 3, "step": 2}  # one more for the last batch, which is smaller; and one for evaluation
    assert len(static[3].traces) == traces[form]


def test_minimize_in_a_traced_step_makes_a_step():
    def step(x):
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.minimize(loss, no_grad_set=[net.bias])
        optimizer.clear_grad()
        return loss

    weights = []
    for wrap in (to_static, lambda function, backend: function):
        app.seed(3)
        net = app.nn.Linear(8, 2)
        optimizer = app.optimizer.Adam(0.1, parameters=net.parameters())
        run = wrap(step, backend="reference")
        for _ in range(2):
            run(app.to_tensor(X))
        weights.append([p.numpy() for p in net.parameters()])
    for traced, eager in zip(*weights, strict=True):
        np.testing.assert_allclose(traced, eager, rtol=1e-4)


def test_gradients_accumulate_until_they_are_cleared():
    w = app.create_parameter([2])

    @to_static(backend="reference")
    def accumulate(x):
        (w * x).sum().backward()

    for _ in range(3):
        accumulate(app.to_tensor([1.0, 2.0]))
    np.testing.assert_allclose(w.grad.numpy(), [3.0, 6.0])
    assert len(accumulate.traces) == 2  # without a gradient at first, and with one


def test_a_gradient_that_backward_adds_to_is_not_read_as_it_was():
    weight = app.to_tensor([1.0, 2.0], stop_gradient=False)
    (weight * 3).sum().backward()

    def step(x):
        before = weight.grad
        (weight * x).sum().backward()
        return before * 1

    with pytest.raises(ProgramError, match="take it again after the change"):
        to_static(step, backend="reference")(app.ones([2]))


def test_a_traced_step_takes_the_gradients_of_an_eager_backward_pass():
    w = app.create_parameter([2], default_initializer=app.nn.initializer.Constant(0.0))
    optimizer = app.optimizer.SGD(1.0, parameters=[w])
    update = to_static(lambda: optimizer.step(), backend="reference")
    for value in (1.0, 2.0):
        (w * value).sum().backward()
        update()
        w.clear_grad()
    np.testing.assert_allclose(w.numpy(), [-3.0, -3.0])


def goes_back(x):
    loss = (x * x).sum()
    loss.backward()
    return loss


def test_a_backward_pass_in_a_traced_function_goes_on_where_its_argument_was_computed():
    for run in (goes_back, to_static(goes_back, backend="reference")):
        x = app.to_tensor([1.0, 2.0], stop_gradient=False)
        first, second = x * 3, x * 5
        second.retain_grads()
        run(first)
        assert x.grad.tolist() == [18.0, 36.0]
        run(second)
        assert x.grad.tolist() == [68.0, 136.0]
        assert (first.grad, second.grad.tolist()) == (None, [10.0, 20.0])


def attacked(x):
    """Steps along the sign of the gradient of a leaf that is made anew in each of them."""
    change = app.zeros_like(x)
    for _ in range(2):
        change = change.detach()
        change.stop_gradient = False
        factor = app.to_tensor([2.0], stop_gradient=False)
        ((x.detach() + change) ** 3 * factor).sum().backward()
        change = change + 0.1 * app.sign(change.grad) + 0.01 * factor.grad
    return x.detach() + change.detach()


def test_leaves_that_a_traced_function_makes_have_their_gradients():
    x = app.to_tensor([1.0, -2.0], stop_gradient=False)
    actual, expected = (f(x).tolist() for f in (to_static(attacked, backend="reference"), attacked))
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert x.grad is None


def clears_first(x):
    x.clear_grad()
    goes_back(x)
    return x * 1


def reads_it(x):
    goes_back(x)
    return x.grad * 2


@pytest.mark.parametrize("function", [clears_first, reads_it])
def test_the_gradient_that_an_argument_has_before_is_not_passed_over(function):
    run = to_static(function, backend="reference")
    x, other = (app.to_tensor([1.0, 2.0], stop_gradient=False) for _ in range(2))
    assert run(x).tolist() == function(other).tolist()
    assert x.grad.tolist() == other.grad.tolist() == [2.0, 4.0]
    with pytest.raises(ProgramError, match=r"uses the .grad of x, an argument, .* set it to None before the call"):
        run(x)
    assert x.grad.tolist() == [2.0, 4.0]
    x.clear_grad(set_to_zero=False)
    run(x)
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_backward_pass_in_a_traced_function_refuses_what_it_would_pass_over():
    run = to_static(goes_back, backend="reference")
    x = app.to_tensor([1.0], stop_gradient=False)
    run(x)
    hook = x.register_hook(lambda gradient: gradient * 10)
    with pytest.raises(ProgramError, match=r"x has a hook for its gradient, .* call backward"):
        run(x)
    hook.remove()
    run(x)
    assert x.grad.tolist() == [4.0]

    held = [x]
    run = to_static(lambda: goes_back(held[0]), backend="reference")
    run()
    hook = x.register_hook(lambda gradient: gradient * 10)
    with pytest.raises(ProgramError, match="has a hook for its gradient"):
        run()
    hook.remove()
    run()
    assert x.grad.tolist() == [8.0]
    held[0] = x * 3
    with pytest.raises(ProgramError, match=r"which was computed outside, .* pass it as an argument"):
        run()


@pytest.mark.parametrize("backend", ["reference", "compiled"])
def test_two_optimisers_and_a_custom_operator_in_one_step(backend):
    values = []
    for wrap in (lambda step: step, to_static(backend=backend)):
        a, b = (app.to_tensor([value, value], stop_gradient=False) for value in (1.0, 2.0))
        optimizers = [app.optimizer.SGD(0.1, parameters=[weights]) for weights in (a, b)]

        def step(x, a=a, b=b, optimizers=optimizers):
            for updated in optimizers:
                (tenfold(a) * b * x).sum().backward()
                updated.step()
                for optimizer in optimizers:
                    optimizer.clear_grad()

        run = wrap(step)
        for _ in range(3):
            run(app.to_tensor([0.1, 0.2]))
        values += [a.numpy(), b.numpy()]
    np.testing.assert_allclose(values[2:], values[:2], rtol=1e-6)


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
