"""What operators cost alone: through every engine, in turns, for as many sizes as there is time."""

import time
from typing import get_args, get_type_hints

import numpy as np
import pytest

import app
from app.custom import custom_op, py_func
from app.run.config import Config
from app.run.costs import LEAST, SIZES, operator_costs, timed_operator
from app.run.network import Activation, find_activation

pytestmark = pytest.mark.slow

ENGINES = get_args(get_type_hints(Config)["engine"])


class Tripled(app.autograd.PyLayer):
    """Keeps something in its context, which no compiled code can hold."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 3.0

    @staticmethod
    def backward(ctx, dy):
        return dy * 3.0


def plain(seconds_of=None):
    """An operator of plain NumPy that counts its calls."""
    calls = seconds_of if seconds_of is not None else {}

    @custom_op
    def squared(x):
        calls["forward"] = calls.get("forward", 0) + 1
        return x * x

    @squared.backward
    def squared_grad(x, dy):
        calls["backward"] = calls.get("backward", 0) + 1
        return 2 * x * dy

    return Activation("squared", squared)


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        *(("reference", name) for name in ("relu", "custom.relu", "custom.prelu", "assign")),
        *((engine, name) for engine in ("eager", "compiled") for name in ("custom.prelu", "assign")),
    ],
)
def test_every_operator_costs_something_through_every_engine(engine, name):
    costs = list(operator_costs([find_activation(name)], engine, 10, sizes=(100, 1000), seconds=1.0))
    assert [(cost.operator, cost.size) for cost in costs] == [(name, 100), (name, 1000)]
    assert all(0 < cost.forward < 1 and 0 < cost.backward < 1 for cost in costs)


@pytest.mark.parametrize("engine", ENGINES)
def test_operators_in_python_are_timed_as_well(engine):
    activations = [Activation("tripled", Tripled.apply), plain(), Activation("double", lambda x: x + x)]
    costs = list(operator_costs(activations, engine, 8, sizes=(64,), seconds=0.01))
    assert [cost.operator for cost in costs] == ["tripled", "squared", "double"]
    assert all(cost.forward > 0 and cost.backward > 0 for cost in costs)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_pass_is_run_as_often_as_it_is_timed(engine):
    calls = {}
    prepare = timed_operator(plain(calls), engine, 4)
    go = prepare(*np.ones((2, 3, 4), np.float32))
    before = dict(calls)
    for _ in range(5):
        go()
    counted = {way: calls[way] - before.get(way, 0) for way in ("forward", "backward")}
    assert counted == {"forward": 5, "backward": 5}


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_the_backward_pass_is_given_what_the_forward_pass_left(engine):
    seen = []

    def forward(x):
        return x * 2

    def backward(x, y, dy):
        seen.append((x.copy(), y.copy(), dy.copy()))
        return dy * 2

    def doubled(x):
        return py_func(forward, x, app.static.InputSpec(x.shape, x.dtype), backward)

    x, dy = np.random.default_rng(0).standard_normal((2, 6, 5), np.float32)
    timed_operator(Activation("doubled", doubled), engine, 5)(x, dy)()
    for given in seen[-2:]:
        np.testing.assert_array_equal(given[0], x)
        np.testing.assert_array_equal(given[1], 2 * x)
        np.testing.assert_array_equal(given[2], dy)


def test_the_compiled_engine_is_timed_and_not_the_reference_engine(monkeypatch):
    def run_operator(op, values):
        raise AssertionError(f"{op.type} was run by the reference engine")

    monkeypatch.setattr("app.run.costs.run_operator", run_operator)
    timed_operator(find_activation("relu"), "compiled", 4)(*np.ones((2, 3, 4), np.float32))()


def test_operators_take_turns():
    order = []

    def noting(name):
        return Activation(name, lambda x: (order.append(name), x * 1.0)[1])

    list(operator_costs([noting("a"), noting("b")], "eager", 2, sizes=(4,), seconds=0))
    assert order == ["a", "b"] * LEAST


def test_an_operator_that_is_slow_is_left_out_where_arrays_are_large():
    def slow(x):
        time.sleep(1e-5 * x.size)
        return x * 1.0

    start = time.perf_counter()
    costs = list(operator_costs([Activation("slow", slow), find_activation("relu")], "eager", 10, seconds=0.02))
    assert time.perf_counter() - start < 2
    assert [cost.size for cost in costs if cost.operator == "slow"] == [1000]
    assert [cost.size for cost in costs if cost.operator == "relu"] == list(SIZES)


def test_one_may_stop():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(operator_costs([find_activation("relu")], "reference", 10, check=stop))


# --- In a run ---


def test_a_run_ends_with_the_costs_of_its_operators(train):
    run = train("costs=true", "train.epochs=1")
    costs = [m for m in run.metrics if m["event"] == "cost"]
    assert [m["operator"] for m in costs[:2]] == ["custom.relu", "relu"]
    assert {m["size"] for m in costs} == set(SIZES)
    assert [list(m) for m in costs] == [["event", "operator", "size", "forward", "backward"]] * len(costs)
    assert run.metrics[-len(costs) :] == costs


@pytest.mark.parametrize("words", [["costs=false"], ["costs=true", "model.hidden=[]"]])
def test_there_may_be_nothing_to_measure(train, words):
    assert not [m for m in train(*words, "train.epochs=1").metrics if m["event"] == "cost"]


def test_an_operator_that_fails_now_does_not_make_the_run_a_failure(train, monkeypatch):
    def fail(*given):
        raise ValueError("not on so many numbers")

    monkeypatch.setattr("app.run.costs.operator_costs", lambda *given, **more: fail())
    run = train("costs=true", "train.epochs=1")
    assert run.status == 0
    assert "note: the operators could not be timed alone: not on so many numbers" in run.out
    assert (run.folder / "summary.txt").exists()
