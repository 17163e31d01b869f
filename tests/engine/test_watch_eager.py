"""Eager operators, seen forwards and backwards with their values, in whatever way they were applied."""

from __future__ import annotations

import numpy as np

import app
from app.engine.watch_eager import Looking
from app.tensor import Parameter


class Twice(app.autograd.PyLayer):
    """An operator that the framework does not apply through its tables."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2


def test_operators_are_seen_in_order_with_names_and_values():
    weight = Parameter(np.array([[1.0], [2.0]], "float32"))
    looking = Looking({id(weight): "weight"})
    x = looking.tensor(np.ones((3, 2), "float32"))
    loss = app.mean(Twice.apply(app.matmul(x, weight)))
    first, second, third = looking.forward()
    assert first.operator == "operator matmul"
    assert [name for name, _ in first.inputs] == ["weight"]  # the data wants no gradient
    assert "Twice" in second.operator
    assert second.outputs[0][1].tolist() == [[6.0]] * 3
    assert second.inputs[0][1] is first.outputs[0][1]
    assert third.outputs[0][1] == loss.numpy()


def test_gradients_are_seen_on_their_way_back_and_left_nowhere():
    weight = Parameter(np.array([[1.0], [2.0]], "float32"))
    looking = Looking({id(weight): "weight"})
    loss = app.mean(Twice.apply(app.matmul(looking.tensor(np.ones((3, 2), "float32")), weight)))
    back = looking.backward(loss)
    assert ["Twice" in look.operator for look in back] == [False, True, False]
    assert back[0].operator == "the gradient of operator mean"
    assert np.allclose(back[1].inputs[0][1], 1 / 3)
    assert np.allclose(back[1].outputs[0][1], 2 / 3)
    (gradient,) = [array for _, array in back[2].outputs if array.shape == (2, 1)]
    assert np.allclose(gradient, 2)
    assert weight.grad is None
