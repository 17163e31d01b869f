"""What operators cost alone: through every engine, in turns, for as many sizes as there is time."""

import time
from unittest.mock import Mock

import numpy as np
import pytest

import app
from app.custom import custom_op, py_func
from app.run.costs import LEAST, SIZES, operator_costs, timed_operator
from app.run.network import Activation, find_activation

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


@custom_op
def squared(x):
    return x * x


squared.backward(lambda x, dy: 2 * x * dy)


def test_operators_of_every_kind_are_timed_for_every_size(engine):
    made = [Activation("tripled", Tripled.apply), Activation("squared", squared), Activation("double", lambda x: x + x)]
    found = [find_activation(name) for name in ("relu", "custom.relu", "custom.prelu", "assign")]
    costs = list(operator_costs([*found, *made], engine, 10, sizes=(100, 1000), seconds=1.0))
    names = [activation.name for activation in (*found, *made)]
    assert [(cost.operator, cost.size) for cost in costs] == [(name, size) for size in (100, 1000) for name in names]
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
    go = timed_operator(Activation("doubled", doubled), engine, 5)(x, dy)
    before = len(forward_calls), len(backward_calls)
    for _ in range(5):
        go()
    assert (len(forward_calls), len(backward_calls)) == (before[0] + 5, before[1] + 5)
    for given in backward_calls[-5:]:
        for value, expected in zip(given, (x, 2 * x, dy), strict=True):
            np.testing.assert_array_equal(value, expected)


def test_the_compiled_engine_is_timed_and_not_the_reference_engine(monkeypatch):
    monkeypatch.setattr("app.run.costs.run_operator", Mock(side_effect=AssertionError))
    timed_operator(find_activation("relu"), "compiled", 4)(*np.ones((2, 3, 4), np.float32))()


def test_operators_take_turns():
    order = []

    def noting(name):
        def operator(x):
            order.append(name)
            return x * 1.0

        return Activation(name, operator)

    list(operator_costs([noting("a"), noting("b")], "eager", 2, sizes=(4,), seconds=0))
    assert order == ["a", "b"] * LEAST


def test_a_slow_operator_is_left_out_for_large_arrays():
    def slow(x):
        time.sleep(1e-5 * x.size)
        return x * 1.0

    start = time.perf_counter()
    costs = list(operator_costs([Activation("slow", slow), find_activation("relu")], "eager", 10, seconds=0.02))
    assert time.perf_counter() - start < 2
    assert [cost.size for cost in costs if cost.operator == "slow"] == [1000]
    assert [cost.size for cost in costs if cost.operator == "relu"] == list(SIZES)


def test_an_operator_that_fails_when_it_is_timed_does_not_make_the_run_a_failure(train, monkeypatch):
    monkeypatch.setattr("app.run.costs.operator_costs", Mock(side_effect=ValueError("not on so many numbers")))
    run = train("costs=true", "train.epochs=1")
    assert run.status == 0
    assert "note: the operators could not be timed alone: not on so many numbers" in run.out
    assert (run.folder / "summary.txt").exists()
