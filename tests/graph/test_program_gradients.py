"""`append_backward` and `gradients` on Programs: names, several uses, several targets, what is left out, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from steps_over_rows import COLUMNS, TWO

import app
from app import static
from app.errors import OperatorError, ProgramError


def data(name: str, *shape: Any) -> static.Variable:
    """An input that wants a gradient."""
    variable = static.data(name, list(shape))
    variable.stop_gradient = False
    return variable


def run(fetch: Any, engine: str = "reference", **feed: Any) -> list[Any]:
    """What is fetched, as lists."""
    executor = static.Executor(engine=engine)
    executor.run(static.default_startup_program())
    feed = {name: np.asarray(value, "float32") for name, value in feed.items()}
    return [value.tolist() for value in executor.run(feed=feed, fetch_list=fetch)]


def fitted() -> Any:
    """A loss of a layer with the parameters fc_0.w_0 and fc_0.b_0."""
    return app.mean(app.square(static.nn.fc(static.data("x", [None, 3]), 2)))


# --- Names ---


def test_a_gradient_is_found_under_the_name_of_its_variable():
    x = data("x", 2)
    y = x * x
    (first,) = static.gradients(app.sum(y), x)
    names = [v.name for v in static.default_main_program().list_vars() if "@GRAD" in v.name]
    assert names == ["sum.out_0@GRAD", f"{y.name}@GRAD", "x@GRAD"]
    (second,) = static.gradients(x * 3.0, x)
    assert (first.name, second.name != "x@GRAD") == ("x@GRAD", True)
    assert run(["x@GRAD", second], x=[1, 2]) == [[2, 4], [3, 3]]


def test_a_target_gradient_that_is_handed_through_gets_the_name_of_the_gradient():
    x = data("x", 2)
    (gradient,) = static.gradients(x + 1.0, x, target_gradients=static.data("a", [2]) * 2.0)
    assert gradient.name == "x@GRAD"


# --- Several uses, several targets ---


def test_target_gradients_weigh_the_targets_and_may_be_variables_arrays_or_missing():
    x, w = data("x", 2), static.data("w", [2])
    y, z = app.square(x), x * 5.0
    weighed = static.gradients([y, z], x, target_gradients=[w, None])
    fixed = static.gradients([y, z, z], x, target_gradients=[np.array([10, 20], "float32"), None, None])
    assert run([*weighed, *fixed], x=[1, 2], w=[1, -1]) == [[2 + 5, -4 + 5], [20 + 10, 80 + 10]]
    with pytest.raises(ProgramError, match="2 targets, but 1 gradients for them"):
        static.gradients([y, z], x, target_gradients=[None])


def test_a_target_may_be_computed_from_another_or_be_the_input_itself():
    x = data("x", 1)
    y = x * 3.0
    z = y * y
    assert run(static.gradients([y, z], [x, y]), x=[2]) == [[3 * (1 + 2 * 6)], [1 + 2 * 6]]
    assert run(static.gradients(y, [y, x]), x=[2]) == [[1], [3]]


def test_an_output_that_the_loss_does_not_use_counts_as_zero():
    x = data("x", 4)
    first, _, last = app.split(x, [1, 2, 1])
    assert run(static.gradients(first * last, x), x=[2, 9, 9, 5]) == [[5, 0, 0, 2]]


@pytest.mark.parametrize("name", TWO)
def test_sizes_that_are_unknown_are_broadcast_as_in_eager_code(name: str):
    def loss_of(x: Any, y: Any) -> Any:
        return app.sum(app.tanh(TWO[name](x, np.array([[0.1, -0.2, 0.3]]) - y)))

    x, y = (static.data(name, shape, "float64") for name, shape in {"x": [None, COLUMNS], "y": [None, 1]}.items())
    x.stop_gradient = y.stop_gradient = False
    loss = loss_of(x, y)
    fetch = [loss, *static.gradients(loss, [x, y])]
    for rows, others in ((1, 1), (4, 4), (4, 1), (1, 4)):
        random = np.random.default_rng(0)
        feed = {"x": random.uniform(-1, 1, (rows, COLUMNS)), "y": random.uniform(-1, 1, (others, 1))}
        tensors = [app.to_tensor(value, stop_gradient=False) for value in feed.values()]
        total = loss_of(*tensors)
        found = static.Executor().run(feed=feed, fetch_list=fetch)
        for value, expected in zip(found, [total, *app.grad(total, tensors)], strict=True):
            np.testing.assert_allclose(value, expected.numpy(), rtol=1e-9, atol=1e-9)


# --- What has no gradient ---


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_no_gradient_flows_through_stop_gradient_or_no_grad_set(engine: str):
    x = data("x", 2)
    a, b = x * 2.0, x * x
    for blocked in ({a.name}, [a]):
        assert run(static.gradients(a + b, x, no_grad_set=blocked), engine, x=[1, 3]) == [[2, 6]]
    assert static.gradients(a * b, [x, a], no_grad_set=[a])[1] is None
    a.stop_gradient = True
    assert run(static.gradients(a * x, x), x=[1, 3]) == [[2, 6]]
    assert run(static.gradients((x * 5.0).detach() * x, x), x=[1, 3]) == [[5, 15]]


def test_variables_that_the_target_does_not_depend_on_have_no_gradient():
    x, y = data("x", 2), data("y", 2)
    z = x * 2.0
    assert static.gradients(y * y, [x, y, z])[::2] == [None, None]


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


def test_append_backward_gives_each_parameter_that_the_loss_depends_on_with_its_gradient():
    static.nn.fc(static.data("y", [None, 3]), 7)
    pairs = static.append_backward(fitted())
    assert [(p.name, g.name, g.shape) for p, g in pairs] == [
        ("fc_1.w_0", "fc_1.w_0@GRAD", (3, 2)),
        ("fc_1.b_0", "fc_1.b_0@GRAD", (2,)),
    ]
    assert len(static.append_backward(static.nn.fc(static.data("row", [1, 3]), 1))) == 2
    with pytest.raises(ProgramError, match=r"the loss must be a single number; rows has .*: take its mean"):
        static.append_backward(static.data("rows", [None]))


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
