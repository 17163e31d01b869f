"""Users' operators in traced functions: on arguments and on captured parameters they do what they do eagerly."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.autograd import Function, PyLayer
from app.custom.shelf.swish import swish
from app.errors import AppError, OperatorError
from app.jit import to_static
from app.static import InputSpec, py_func

# Every operator's gradient is 10 times the right one, so that a derivative that is not the user's is noticed.


def of_py_func(x, y):
    def forward(a, b):
        return a * b + 1

    def backward(a, b, out, dout):
        return 10 * dout * b, 10 * dout * a

    return py_func(forward, [x, y], InputSpec.from_tensor(x), backward_func=backward)


class Product(PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y + 1

    @staticmethod
    def backward(ctx, d):
        x, y = ctx.saved_tensor()
        return 10 * d * y, 10 * d * x


class Binarize(Function):
    @staticmethod
    def forward(ctx, x):
        return app.sign(x)

    @staticmethod
    def backward(ctx, d):
        return d * 10


class Settled(Function):
    """Settings that are no Tensors, and a context that is set up apart."""

    @staticmethod
    def forward(x, factor, names, y):
        return x * factor + y if "plus" in names else x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, d):
        return 10 * d * ctx.factor, None, None, d


class Several(PyLayer):
    """Two outputs, a list of Tensors, and no gradient for the second."""

    @staticmethod
    def forward(ctx, values, scale=1.0):
        ctx.scale = scale
        return values[0] * scale, values[0] + values[1]

    @staticmethod
    def backward(ctx, d, e):
        return 10 * d * ctx.scale + e, None


class Nested(PyLayer):
    """Calls other operators of users, and a function of its own."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return helper(Product.apply(x, y))

    @staticmethod
    def backward(ctx, d):
        x, y = ctx.saved_tensor()
        return 10 * cube(x) * d, Binarize.apply(y) * d


def helper(x):
    return cube(x) + of_py_func(x, x)


@app.custom_op(elementwise=True)
def cube(x):
    return x * x * x


@cube.backward
def _(x, dy):
    return 30 * x * x * dy


@app.custom_op
def ordered(x, y, *, power=2):
    return np.sort(x, axis=-1) * y**power


@ordered.backward
def _(x, y, dout, *, power):
    return 10 * dout * y, dout


@app.custom_op(outputs=("low", "high"))
def bounds(x, y):
    return np.minimum(x, y), np.maximum(x, y)


@bounds.backward
def _(x, y, dlow, dhigh):
    return 10 * dlow, 10 * dhigh


def static_layer(x, y):
    return app.static.nn.static_pylayer(lambda a, b: a * b, [x, y], lambda d: (d * 10, d * 20))


HOOKS = {
    "py_func": of_py_func,
    "PyLayer": Product.apply,
    "PyLayer of a list": lambda x, y: sum(Several.apply([x, y], scale=3.0)),
    "nested": Nested.apply,
    "Function": lambda x, y: Binarize.apply(x) * Binarize.apply(y),
    "Function with settings": lambda x, y: Settled.apply(x, 3.0, ("plus", "other"), y),
    "custom_op": lambda x, y: ordered(x, y, power=3),
    "elementwise": lambda x, y: cube(x) + cube(y) * 2,
    "several outputs": lambda x, y: sum(bounds(x, y)),
    "shipped": lambda x, y: swish(x) + swish(y),
    "static_pylayer": static_layer,
}
WHERE = {
    "arguments": lambda x, y, w, v: (x, y),
    "captured": lambda x, y, w, v: (w, v),
    "captured first": lambda x, y, w, v: (w, y),
    "captured second": lambda x, y, w, v: (x, w),
}


def values_and_gradients(hook, choose, traced):
    w, v = (app.to_tensor(np.array(a, "float32"), stop_gradient=False) for a in ([0.3, -0.7], [-0.2, 0.9]))
    x, y = (app.to_tensor(np.array(a, "float32"), stop_gradient=False) for a in ([1.5, 0.5], [0.4, -0.6]))

    def function(x, y):
        return (hook(*choose(x, y, w, v)) * x).sum() + (w * v).sum()

    run = to_static(function, backend="reference") if traced else function
    loss = run(x * 1, y)
    loss.backward()
    return [loss.numpy(), *[t.grad if t.grad is None else t.grad.numpy() for t in (x, y, w, v)]]


def check_alike(hook, choose):
    """None, for an input without a gradient, may be zeros when traced: what a backward returns is known only later."""
    eager, traced = (values_and_gradients(hook, choose, traced) for traced in (False, True))
    for expected, found in zip(eager, traced, strict=True):
        np.testing.assert_allclose(0 if found is None else found, 0 if expected is None else expected, rtol=1e-5)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_traced_operator_gives_the_values_and_gradients_that_it_gives_eagerly(hook):
    for choose in WHERE.values():
        check_alike(HOOKS[hook], choose)


def parameter(*numbers):
    return app.to_tensor(np.array(numbers, "float32"), stop_gradient=False)


@pytest.mark.parametrize("hook", ["py_func", "PyLayer", "Function", "custom_op", "elementwise"])
def test_no_grad_holds_for_a_traced_operator(hook):
    w, x = parameter(2.0), parameter(3.0)

    def function(x):
        with app.no_grad():
            y = HOOKS[hook](x, w)
        return y * x

    for run in (function, to_static(function, backend="reference")):
        x.clear_grad()
        run(x).sum().backward()
        assert w.grad is None
        np.testing.assert_allclose(x.grad.numpy(), HOOKS[hook](x, w).numpy())


class Tells(Function):
    """Says which of its inputs want a gradient."""

    seen = None

    @staticmethod
    def forward(ctx, x, scale, y):
        Tells.seen = ctx.needs_input_grad
        return x * scale + y

    @staticmethod
    def backward(ctx, d):
        return d, None, None


def test_a_traced_operator_is_told_which_inputs_want_gradients():
    w, frozen = parameter(1.0), app.to_tensor([1.0])
    to_static(lambda x: Tells.apply(w, 2.0, frozen) + x, backend="reference")(frozen)
    assert Tells.seen == (True, False, False)


def test_an_out_from_outside_takes_the_numbers_or_is_refused_where_a_gradient_would_flow():
    w, out = parameter(1.0, 2.0), app.zeros([2])

    def function(x, backward):
        return py_func(np.exp, w, out, backward_func=backward) + x + out

    run, zeros = to_static(function, backend="reference"), app.zeros([2])
    np.testing.assert_allclose(run(zeros, None).numpy(), 2 * np.exp([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_allclose(out.numpy(), np.exp([1.0, 2.0]), rtol=1e-6)
    with pytest.raises(OperatorError, match=r"its out 0 is a Tensor from outside .*InputSpec.from_tensor\(out\)"):
        run(zeros, lambda w, e, d: e * d)


class AddsOne(Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1.0)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, d):
        return d


class AddsOneSilently(PyLayer):
    @staticmethod
    def forward(ctx, x):
        x.add_(1.0)
        return x * 2

    @staticmethod
    def backward(ctx, d):
        return d * 2


@pytest.mark.parametrize("layer", [AddsOne, AddsOneSilently])
def test_a_layer_that_changes_its_input_in_place_is_refused_in_a_program(layer):
    def function(x):
        y = x * 1
        return layer.apply(y) + y

    with pytest.raises(AppError, match=r"changes its input 0 in place, .* return a new Tensor"):
        to_static(function, backend="reference")(parameter(1.0))
