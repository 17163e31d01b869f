"""`append_backward` and `gradients` on Programs: names, several uses, several targets, what is left out, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import OperatorError, ProgramError


def data(name: str, *shape: Any, dtype: str = "float32") -> static.Variable:
    """An input that wants a gradient."""
    variable = static.data(name, list(shape), dtype)
    variable.stop_gradient = False
    return variable


def run(fetch: Any, **feed: Any) -> list[np.ndarray]:
    feed = {name: np.asarray(value, "float32") for name, value in feed.items()}
    executor = static.Executor()
    executor.run(static.default_startup_program())
    return executor.run(feed=feed, fetch_list=fetch)


# --- Names ---


def test_a_gradient_is_found_under_the_name_of_its_variable():
    x = data("x", 2)
    h = app.tanh(x)
    static.gradients(app.sum(h), x)
    assert [v.name for v in static.default_main_program().list_vars() if "@GRAD" in v.name] == [
        "sum.out_0@GRAD",
        f"{h.name}@GRAD",
        "x@GRAD",
    ]
    np.testing.assert_allclose(run(["x@GRAD"], x=[0.5, 1])[0], 1 - np.tanh([0.5, 1]) ** 2, rtol=1e-6)


def test_a_second_pass_leaves_the_names_of_the_first_alone():
    x = data("x", 2)
    first = static.gradients(x * x, x)[0]
    second = static.gradients(x * 3.0, x)[0]
    assert first.name == "x@GRAD"
    assert second.name != "x@GRAD"
    a, b = run([first, second], x=[1, 2])
    np.testing.assert_array_equal(a, [2, 4])
    np.testing.assert_array_equal(b, [3, 3])


# --- Several uses, several targets ---


def test_target_gradients_weigh_the_targets_and_may_be_variables_arrays_or_missing():
    x, w = data("x", 2), static.data("w", [2])
    y, z = app.square(x), x * 5.0
    weighed = static.gradients([y, z], x, target_gradients=[w, None])
    fixed = static.gradients([y, z, z], x, target_gradients=[np.array([10, 20], "float32"), None, None])
    a, b = run([*weighed, *fixed], x=[1, 2], w=[1, -1])
    np.testing.assert_array_equal(a, [2 + 5, -4 + 5])
    np.testing.assert_array_equal(b, [20 + 10, 80 + 10])
    with pytest.raises(ProgramError, match="2 targets, but 1 gradients for them"):
        static.gradients([y, z], x, target_gradients=[None])


def test_a_target_that_another_target_is_computed_from():
    x = data("x", 1)
    y = x * 3.0
    z = y * y
    g = static.gradients([y, z], [x, y])
    gx, gy = run(g, x=[2])
    assert (gx, gy) == (3 * (1 + 2 * 6), 1 + 2 * 6)


def test_the_gradient_of_a_target_with_respect_to_itself_is_one():
    x = data("x", 2)
    y = app.exp(x)
    gy, gx = run(static.gradients(y, [y, x]), x=[0, 1])
    np.testing.assert_array_equal(gy, [1, 1])
    np.testing.assert_allclose(gx, np.exp([0, 1]), rtol=1e-6)


def test_an_output_that_the_loss_does_not_use_counts_as_zero():
    x = data("x", 4)
    first, _, last = app.split(x, [1, 2, 1])
    np.testing.assert_array_equal(run(static.gradients(first * last, x), x=[2, 9, 9, 5])[0], [5, 0, 0, 2])


# --- What has no gradient ---


def test_no_gradient_flows_through_what_no_grad_set_names():
    x = data("x", 2)
    a, b = x * 2.0, x * x
    for blocked in ({a.name}, [a]):
        g = static.gradients(a + b, x, no_grad_set=blocked)
        np.testing.assert_array_equal(run(g, x=[1, 3])[0], [2, 6])
    assert static.gradients(a * b, [x, a], no_grad_set=[a])[1] is None


def test_no_gradient_flows_through_a_variable_with_stop_gradient():
    x = data("x", 2)
    a = x * 2.0
    a.stop_gradient = True
    np.testing.assert_array_equal(run(static.gradients(a * x, x), x=[1, 3])[0], [2, 6])
    np.testing.assert_array_equal(run(static.gradients((x * 5.0).detach() * x, x), x=[1, 3])[0], [5, 15])


def test_what_the_target_does_not_depend_on_has_no_gradient():
    x, y = data("x", 2), data("y", 2)
    z = x * 2.0
    assert static.gradients(y * y, [x, y, z])[::2] == [None, None]


def test_data_have_no_gradient_unless_asked_for_before_they_are_used():
    x = static.data("x", [2])
    with pytest.raises(
        OperatorError, match=r"no gradient flows from multiply.out_0 to x: a variable with stop_gradient"
    ):
        static.gradients(x * x, x)


def test_a_way_that_leads_through_an_operator_without_gradient_alone_is_an_error():
    x = data("x", 3)
    y = app.mean(app.cast(app.argmax(x), "float32"))
    with pytest.raises(OperatorError, match=f"no gradient flows from {y.name} to x: operator argmax has none"):
        static.gradients(y, x)


def test_that_error_names_a_custom_operator_with_its_place():
    x = data("x", 3)
    y = static.py_func(np.sort, x, static.InputSpec([3]))
    with pytest.raises(OperatorError, match=r"operator py_func\.sort \(test_program_gradients\.py:\d+\) has none"):
        static.gradients(app.mean(y), x)


# --- append_backward ---


def fitted() -> Any:
    return app.mean(app.square(static.nn.fc(static.data("x", [None, 3]), 2)))


def test_append_backward_gives_each_parameter_with_its_gradient():
    pairs = static.append_backward(fitted())
    assert [(p.name, g.name, g.shape) for p, g in pairs] == [
        ("fc_0.w_0", "fc_0.w_0@GRAD", (3, 2)),
        ("fc_0.b_0", "fc_0.b_0@GRAD", (2,)),
    ]


def test_parameters_that_the_loss_does_not_depend_on_are_left_out():
    static.nn.fc(static.data("y", [None, 3]), 7)
    assert [p.name for p, _ in static.append_backward(fitted())] == ["fc_1.w_0", "fc_1.b_0"]


def test_parameters_can_be_chosen_by_variable_or_name():
    loss = fitted()
    weight, bias = static.default_main_program().all_parameters()
    assert [p.name for p, _ in static.append_backward(loss, [bias.name])] == ["fc_0.b_0"]
    assert [p.name for p, _ in static.append_backward(loss, [weight])] == ["fc_0.w_0"]
    with pytest.raises(ProgramError, match="block 0 has no variable 'w'"):
        static.append_backward(loss, ["w"])


def test_gradients_of_other_variables_can_be_asked_for_too():
    x = static.data("x", [1])
    y = x * 3.0
    loss = app.tanh(y)
    assert static.append_backward(loss, [x]) == []
    x.stop_gradient = y.stop_gradient = loss.stop_gradient = False
    pairs = static.append_backward(loss, [x, y])
    assert [(v.name, g.name) for v, g in pairs] == [("x", "x@GRAD"), (y.name, f"{y.name}@GRAD")]


def test_parameters_in_no_grad_set_and_those_not_trainable_are_left_out():
    x = static.data("x", [None, 3])
    fixed = app.nn.ParamAttr(trainable=False)
    loss = app.mean(static.nn.fc(static.nn.fc(x, 2, weight_attr=fixed), 2))
    assert [p.name for p, _ in static.append_backward(loss, no_grad_set={"fc_1.w_0"})] == ["fc_0.b_0", "fc_1.b_0"]


@pytest.mark.parametrize("shape", [[None, 2], [2], [None]])
def test_a_loss_is_a_single_number_whose_axes_may_have_size_1(shape: list):
    assert len(static.append_backward(static.nn.fc(static.data("row", [1, 3]), 1))) == 2
    x = static.data("x", shape)
    with pytest.raises(ProgramError, match=r"the loss must be a single number; x has shape .*: take its mean"):
        static.append_backward(x)


def test_minimising_what_depends_on_no_parameter_is_an_error():
    with pytest.raises(app.errors.AppError, match="no trainable parameter that the loss depends on"):
        app.optimizer.SGD(0.1).minimize(app.mean(static.data("x", [2])))


# --- Gradients of gradients ---


def test_a_gradient_penalty_trains_through_the_gradient():
    x = data("x", None, 2)
    hidden = static.nn.fc(x, 4, activation="tanh")
    slope = static.gradients(app.sum(hidden), x)[0]
    penalty = app.mean(app.square(slope))
    app.optimizer.SGD(0.1).minimize(penalty)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    feed = {"x": np.array([[0.1, 0.2], [0.3, -0.4]], "float32")}
    losses = [executor.run(feed=feed, fetch_list=[penalty])[0] for _ in range(20)]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("batch", [1, 4])
def test_an_unknown_batch_that_turns_out_to_be_1_is_broadcast_rightly(batch: int):
    x, y = data("x", None, 3), data("y", None, 3)
    gx, gy = static.gradients(x * y, [x, y])
    at_x, at_y = np.ones((batch, 3), "float32"), np.full((1, 3), 2, "float32")
    value_x, value_y = run([gx, gy], x=at_x, y=at_y)
    np.testing.assert_array_equal(value_x, np.full((batch, 3), 2))
    np.testing.assert_array_equal(value_y, np.full((1, 3), batch))
