"""`append_backward` and `gradients` on Programs: several targets, what is left out, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import DtypeError, OperatorError, ProgramError


def data(name: str, *shape: Any) -> static.Variable:
    """An input that wants a gradient."""
    variable = static.data(name, list(shape))
    variable.stop_gradient = False
    return variable


def run(fetch: Any, **feed: Any) -> list[Any]:
    """What is fetched, as lists."""
    executor = static.Executor()
    feed = {name: np.asarray(value, "float32") for name, value in feed.items()}
    return [value.tolist() for value in executor.run(feed=feed, fetch_list=fetch)]


def fitted() -> Any:
    """A loss of a layer with the parameters fc_0.w_0 and fc_0.b_0."""
    return app.mean(app.square(static.nn.fc(static.data("x", [None, 3]), 2)))


# --- Several targets ---


def test_target_gradients_weigh_the_targets_and_may_be_variables_arrays_or_missing():
    x, w = data("x", 2), static.data("w", [2])
    y, z = app.square(x), x * 5.0
    weighed = static.gradients([y, z], x, target_gradients=[w, None])
    fixed = static.gradients([y, z, z], x, target_gradients=[np.array([10, 20], "float32"), None, None])
    assert run([*weighed, *fixed], x=[1, 2], w=[1, -1]) == [[2 + 5, -4 + 5], [20 + 10, 80 + 10]]
    with pytest.raises(ProgramError, match="2 targets, but 1 gradients for them"):
        static.gradients([y, z], x, target_gradients=[None])


# --- What has no gradient ---


def test_the_gradient_of_integers_is_refused_and_not_rounded():
    x = static.data("x", [2], "int64")
    x.stop_gradient = False
    with pytest.raises(DtypeError, match="the gradient of x, of int64, would be rounded"):
        static.gradients([x * 0.5], [x])


@pytest.mark.parametrize(
    ("use", "stops", "message"),
    [
        (lambda x: x * x, True, "no gradient flows from multiply.out_0 to x: a variable with stop_gradient"),
        (lambda x: app.cast(app.argmax(x), "float32"), False, "from cast.out_0 to x: operator argmax has none"),
        (
            lambda x: static.py_func(np.sort, x, static.InputSpec([3])),
            False,
            r"operator py_func\.sort \(test_program_gradients\.py:\d+\) has none",
        ),
    ],
)
def test_a_gradient_that_cannot_reach_its_variable_is_an_error(use: Any, stops: bool, message: str):
    x = data("x", 3)
    x.stop_gradient = stops
    with pytest.raises(OperatorError, match=message):
        static.gradients(use(x), x)


# --- append_backward ---


def test_variables_can_be_chosen_by_name_or_as_they_are():
    loss = fitted()
    weight, bias = static.default_main_program().all_parameters()
    assert [p.name for p, _ in static.append_backward(loss, [bias.name])] == ["fc_0.b_0"]
    assert [p.name for p, _ in static.append_backward(loss, [weight])] == ["fc_0.w_0"]
    with pytest.raises(ProgramError, match="block 0 has no variable 'w'"):
        static.append_backward(loss, ["w"])
    y = static.data("y", [1])
    assert static.append_backward(app.tanh(y), [y]) == []
    y.stop_gradient = False
    assert [(v.name, g.name) for v, g in static.append_backward(app.tanh(y), [y])] == [("y", "y@GRAD")]


def test_parameters_in_no_grad_set_and_those_not_trainable_are_left_out():
    x = static.data("x", [None, 3])
    fixed = app.nn.ParamAttr(trainable=False)
    loss = app.mean(static.nn.fc(static.nn.fc(x, 2, weight_attr=fixed), 2))
    assert [p.name for p, _ in static.append_backward(loss, no_grad_set={"fc_1.w_0"})] == ["fc_0.b_0", "fc_1.b_0"]
