"""Memory is planned once and used again, and compiling takes time in proportion to the network."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.engine.compiled.buffers import Plan, plan_buffers
from app.engine.compiled.lower import Lowered, lower
from app.engine.compiled.memory import persistable
from app.engine.compiled.passes import PASSES
from app.engine.compiled.schedule import schedule
from app.engine.compiled.source import generate
from app.graph.passes import optimise
from app.graph.scope import Scope


def lowered(keep: set[str]) -> Lowered:
    low = lower(optimise(static.default_main_program(), set(keep), PASSES), keep, lambda op, _: "")
    schedule(low)
    return low


def planned(keep: set[str]) -> tuple[Lowered, Plan]:
    low = lowered(keep)
    return low, plan_buffers(low, keep)


def deep(layers: int, width: int = 32) -> Any:
    x = static.data("x", [None, width])
    for _ in range(layers):
        x = app.tanh(static.nn.fc(x, width))
    loss = app.mean(x)
    app.optimizer.SGD(0.1).minimize(loss)
    return loss


def test_a_loop_writes_over_an_input_that_is_not_read_again():
    x = static.data("x", [None, 8])
    a = app.matmul(x, app.tanh(app.matmul(x, x, transpose_x=True)))
    b = app.tanh(a)
    low, plan = planned({b.name})
    assert low.steps[-1].op.inputs == (a.name,)
    assert plan.place[a.name] == plan.place[b.name]
    text = generate(low, plan, [b.name]).text
    one, same = (name.replace(".", "_") for name in (a.name, b.name))
    assert f"{same} = {one}\n" in text  # so that LLVM sees that they are the same memory
    _, plan = planned({a.name, b.name})
    assert plan.place[a.name] != plan.place[b.name]


def test_memory_that_another_thread_may_still_read_is_not_overwritten():
    x = static.data("x", [None, 32])
    h = app.tanh(x)
    total = app.sum(h)  # one thread reads all rows, while the other goes on
    y = app.exp(app.matmul(x, x, transpose_x=True))
    low, plan = planned({total.name, y.name})
    order = [step.op.type for step in low.steps]
    assert order.index("sum") < order.index("exp")
    assert not low.steps[order.index("exp")].must_meet
    assert plan.place[h.name] != plan.place[y.name]


def test_memory_that_another_thread_may_use_inside_a_branch_is_not_overwritten():
    x, block = static.data("x", [None, 32]), static.default_main_program().global_block()
    v, w = block.create_parameter("v", [32, 8]), block.create_parameter("w", [64])
    h = static.nn.cond(app.max(w) > 0.0, lambda: app.sum(app.tanh(x) @ v, axis=1), lambda: app.sum(x, axis=1))
    y = app.exp(w)
    # in this order, without barriers
    low = lower(static.default_main_program(), {h.name, y.name}, lambda op, _: "")
    plan = plan_buffers(low, {h.name, y.name})
    (branch,) = (step for step in low.steps if step.bodies)
    inside = {plan.place[name] for part in branch.everything for name in part.allocated if name in plan.place}
    assert len(inside) > 1
    assert plan.place[y.name] not in inside


@pytest.mark.slow
def test_the_time_before_compiling_grows_about_linearly_with_depth():
    def seconds(layers: int) -> float:
        with static.program_guard(static.Program(), static.Program()):
            loss = deep(layers, 8)
            best = 9.0
            for _ in range(2):
                began = time.process_time()
                low, plan = planned({loss.name})
                generate(low, plan, [loss.name])
                best = min(best, time.process_time() - began)
            return best

    short, long = seconds(8), seconds(32)
    assert long < 4 * short * 3


def test_a_parameter_stays_in_the_array_of_the_scope_unless_that_is_a_view():
    static.nn.fc(static.data("x", [None, 3]), 2, bias_attr=False)
    low, whole = lowered({"fc_0.w_0"}), np.ones((5, 2), "float32")
    for array, stays in ((np.ones((3, 2), "float32"), True), (whole[:3], False)):
        scope = Scope()
        scope.values["fc_0.w_0"] = array
        assert persistable("fc_0.w_0", low, scope) is scope.values["fc_0.w_0"]
        assert (scope.values["fc_0.w_0"] is array) is stays
