"""Operators that misbehave, each in one way: what tests of training, and of its messages, name as `file.py:name`."""

import numba
import numpy as np

import app

calls = {"raises": 0, "sometimes": 0}


def relu_grad(x, dy):
    return dy * (x > 0)


def misbehaving(forward, backward=relu_grad):
    operator = app.custom_op(forward, name="own")  # one name for all, so that what is compiled around them is the same
    operator.backward(backward)
    return operator


@misbehaving
def nan_from_finite(x):
    y = np.maximum(x, 0)
    y[0, 0] = np.nan if x[0, 0] > NAN_FROM else y[0, 0]
    return y


NAN_FROM = 0.5


@misbehaving
def sometimes_nan(x):
    calls["sometimes"] += 1
    return np.full_like(x, np.nan) if calls["sometimes"] == 10 else np.maximum(x, 0)


RAISES_FROM = 61


@misbehaving
def raises_later(x):
    calls["raises"] += 1
    if calls["raises"] >= RAISES_FROM:
        raise RuntimeError("enough of it")
    return np.maximum(x, 0)


@misbehaving
def raises_once(x):
    calls["raises"] += 1
    if calls["raises"] == RAISES_FROM:
        raise RuntimeError("enough of it")
    return np.maximum(x, 0)


@misbehaving
def exits_later(x):
    calls["raises"] += 1
    if calls["raises"] >= RAISES_FROM:
        raise SystemExit(0)
    return np.maximum(x, 0)


@misbehaving
def writes_into_its_input(x):
    x[x < 0] = 0
    return x


@misbehaving
@numba.njit
def writes_natively(x):
    for row in range(x.shape[0]):
        for column in range(x.shape[1]):
            x[row, column] = max(x[row, column], 0)
    return x


def relu(x):
    return np.maximum(x, 0)


transposed = misbehaving(lambda x: relu(x).T)
other_at_the_end = misbehaving(lambda x: relu(x)[:, : 5 if len(x) != 4 else 3])
relu_as_it_is = misbehaving(relu)
gradient_too_large = misbehaving(relu, lambda x, dy: dy * (x > 0) * 1e30)
gradient_of_wrong_shape = misbehaving(relu, lambda x, dy: (dy * (x > 0))[:, :1])
gradient_that_writes = misbehaving(relu, lambda x, dy: np.multiply(dy, x > 0, out=dy))
gradient_of_nan = misbehaving(relu, lambda x, dy: dy * np.nan)
nan_gradient_hidden_from_the_loss = misbehaving(
    lambda x: np.where(x > 0, x, np.zeros_like(x)), lambda x, dy: dy * np.nan
)


class LayerOfNan(app.autograd.PyLayer):
    """Whose backward gives what is no number."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return app.nn.functional.relu(x)

    @staticmethod
    def backward(ctx, dy):
        return dy * float("nan")


class LayerThatRaises(LayerOfNan):
    """Whose backward raises what is none of the framework's errors."""

    @staticmethod
    def backward(ctx, dy):
        return dy * (1 // 0)
