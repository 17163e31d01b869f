"""What operators cost alone: through every engine, in turns, at the size that they have in a network."""

from unittest.mock import Mock

import numpy as np
import pytest

import app
from app.custom import py_func
from app.run.activation import Activation, find_activation
from app.run.config import Config, ModelConfig, TrainConfig
from app.run.costs import LEAST, measure_costs, operator_costs, timed_operator

pytestmark = pytest.mark.slow


class Tripled(app.autograd.PyLayer):
    """Keeps something in its context, which no compiled code can hold."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 3.0

    @staticmethod
    def backward(ctx, dy):
        return dy * 3.0


def test_operators_of_every_kind_are_timed(engine):
    functions = [Activation("tripled", Tripled.apply), Activation("double", lambda x: x + x)]
    activations = [find_activation(name) for name in ("relu", "custom.prelu", "assign")]
    costs = operator_costs([*activations, *functions], engine, 20, 10)
    assert [cost.operator for cost in costs] == [activation.name for activation in (*activations, *functions)]
    assert all(0 < cost.forward < 1 and 0 < cost.backward < 1 for cost in costs)


def test_each_pass_runs_as_often_as_it_is_timed_and_the_backward_pass_has_the_values_of_the_forward_one(engine):
    forward_calls, backward_calls = [], []

    def forward(x):
        forward_calls.append(x)
        return x * 2

    def backward(x, y, dy):
        backward_calls.append((x.copy(), y.copy(), dy.copy()))
        return dy * 2

    def doubled(x):
        return py_func(forward, x, app.static.InputSpec(x.shape, x.dtype), backward)

    x, dy = np.random.default_rng(0).standard_normal((2, 6, 5), np.float32)
    go = timed_operator(Activation("doubled", doubled), engine, x, dy)
    before = len(forward_calls), len(backward_calls)
    for _ in range(5):
        go()
    assert (len(forward_calls), len(backward_calls)) == (before[0] + 5, before[1] + 5)
    for arguments in backward_calls[-5:]:
        for value, expected in zip(arguments, (x, 2 * x, dy), strict=True):
            np.testing.assert_array_equal(value, expected)


def test_the_compiled_engine_is_timed_and_not_eager_calls(monkeypatch):
    monkeypatch.setattr("app.run.costs._eagerly", Mock(side_effect=AssertionError))
    timed_operator(find_activation("relu"), "compiled", *np.ones((2, 3, 4), np.float32))()


def test_operators_take_turns():
    order = []

    def noting(name):
        def operator(x):
            order.append(name)
            return x * 1.0

        return Activation(name, operator)

    operator_costs([noting("a"), noting("b")], "eager", 2, 2, seconds=0)
    assert order == ["a", "b"] * LEAST


@pytest.mark.parametrize(("batch", "rows"), [(16, 16), (10**10, 60)])
def test_arrays_have_the_batch_and_the_width_of_the_network(batch, rows):
    shapes, events = set(), []

    def operator(x):
        shapes.add(tuple(x.shape))
        return x * 1.0

    config = Config(engine="eager", model=ModelConfig(hidden=(7, 9)), train=TrainConfig(batch_size=batch))
    costs = measure_costs(config, [Activation("a", operator)], 60, events.append, pytest.fail)
    assert shapes == {(rows, 7)}
    assert events == costs
    assert len(costs) == 1


def test_an_operator_that_fails_when_it_is_timed_does_not_make_the_run_a_failure(train, monkeypatch):
    monkeypatch.setattr("app.run.costs.operator_costs", Mock(side_effect=ValueError("not on so many numbers")))
    run = train("costs=true", "train.epochs=1")
    assert run.status == 0
    assert "note: the operators could not be timed alone: not on so many numbers" in run.out
    assert (run.folder / "summary.txt").exists()
