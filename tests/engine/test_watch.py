"""Watching the operators of Programs and of Tensors run, one by one, with what each read and made."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.engine import Executor, Scope
from app.engine.watch import watch_program, watch_tensors
from app.errors import OperatorError, ShapeError
from app.graph import Program, names, program_guard, static_mode
from app.static import data
from app.tensor import Parameter


def test_every_operator_is_shown_in_order_with_its_values():
    main, startup, scope = Program(), Program(), Scope()
    with names.guard(), program_guard(main, startup), static_mode():
        x = data("x", [None, 2])
        loss = app.mean(app.static.nn.fc(x, 3))
        app.optimizer.SGD(0.1).minimize(loss)
    Executor().run(startup, scope=scope)
    feed = {"x": np.ones((4, 2), "float32")}
    runs = list(watch_program(main, feed, scope))
    assert len(runs) == len(main.global_block().ops)
    assert next(name for name, _ in runs[0].inputs) == "x"
    (mean,) = [run for run in runs if run.operator.startswith("operator mean (test_watch.py:")]
    ((name, value),) = mean.outputs
    assert name == loss.name
    assert value == pytest.approx(mean.inputs[0][1].mean())
    assert runs[-1].operator.startswith("operator sgd (test_watch.py:")


@app.custom_op
def fewer_where_many(x):
    return x[:3] if len(x) > 3 else x * 1


fewer_where_many.backward(lambda x, dout: np.zeros_like(x))


def test_an_error_names_the_operator_whose_result_had_another_shape():
    main = Program()
    with names.guard(), program_guard(main, Program()), static_mode():
        x = data("x", [None, 2])
        app.add(fewer_where_many(x), x)
    list(watch_program(main, {"x": np.ones((2, 2), "float32")}, Scope()))
    with pytest.raises(
        (ShapeError, OperatorError),
        match=r"operator fewer_where_many .* returned shape \[3, 2\] for a batch of 5, expected \[-1, 2\]; then "
        "operator add",
    ):
        list(watch_program(main, {"x": np.ones((5, 2), "float32")}, Scope()))


class Twice(app.autograd.PyLayer):
    """An operator that the framework does not apply through its tables."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2


def test_operators_on_tensors_and_their_gradients_are_watched_and_nothing_is_stored():
    weight = Parameter(np.array([[1.0], [2.0]], "float32"))
    losses = []

    def loss_of(x):
        losses.append(app.mean(Twice.apply(app.matmul(x, weight))))
        return losses[0]

    runs = watch_tensors(loss_of, np.ones((3, 2), "float32"), {id(weight): "weight"}, True)
    first, second, third, *back = runs
    assert first.operator == "operator matmul"
    assert [name for name, _ in first.inputs] == ["weight"]  # the data wants no gradient
    assert second.outputs[0][1].tolist() == [[6.0]] * 3
    assert second.inputs[0][1] is first.outputs[0][1]
    assert third.outputs[0][1] == losses[0].numpy()
    assert ["Twice" in run.operator for run in runs] == [False, True, False] * 2
    assert back[0].operator == "the gradient of operator mean"
    assert np.allclose(back[1].inputs[0][1], 1 / 3)
    assert np.allclose(back[1].outputs[0][1], 2 / 3)
    (gradient,) = [array for _, array in back[2].outputs if array.shape == (2, 1)]
    assert np.allclose(gradient, 2)
    assert weight.grad is None
    assert len(watch_tensors(loss_of, np.ones((3, 2), "float32"), {}, False)) == 3
