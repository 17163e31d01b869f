"""A Program operator by operator: each with what it read and made, and the one before an error that surprised."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.engine import Executor, Scope
from app.engine.watch import looks_at
from app.errors import OperatorError, ShapeError
from app.graph import Program, names, program_guard, static_mode
from app.static import data


def test_every_operator_is_shown_in_order_with_its_values():
    main, startup, scope = Program(), Program(), Scope()
    with names.guard(), program_guard(main, startup), static_mode():
        x = data("x", [None, 2])
        loss = app.mean(app.static.nn.fc(x, 3))
        app.optimizer.SGD(0.1).minimize(loss)
    Executor().run(startup, scope=scope)
    feed = {"x": np.ones((4, 2), "float32")}
    looks = list(looks_at(main, feed, scope))
    assert len(looks) == len(main.global_block().ops)
    assert next(name for name, _ in looks[0].inputs) == "x"
    (mean,) = [look for look in looks if look.operator == "operator mean"]
    ((name, value),) = mean.outputs
    assert name == loss.name
    assert value == pytest.approx(mean.inputs[0][1].mean())
    assert looks[-1].operator == "operator sgd"


@app.custom_op
def fewer_where_many(x):
    return x[:3] if len(x) > 3 else x * 1


fewer_where_many.backward(lambda x, dout: np.zeros_like(x))


def test_an_error_is_told_with_the_operator_whose_result_had_another_shape():
    main = Program()
    with names.guard(), program_guard(main, Program()), static_mode():
        x = data("x", [None, 2])
        app.add(fewer_where_many(x), x)
    list(looks_at(main, {"x": np.ones((2, 2), "float32")}, Scope()))
    with pytest.raises(
        (ShapeError, OperatorError),
        match=r"operator fewer_where_many .* made shape \[3, 2\] of a batch of 5, where \[-1, 2\] was foretold; then "
        "operator add",
    ):
        list(looks_at(main, {"x": np.ones((5, 2), "float32")}, Scope()))
