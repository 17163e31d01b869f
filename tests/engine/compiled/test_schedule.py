"""Steps are ordered so that threads seldom have to wait for one another, and parts so that alike layers share code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.engine.compiled import parts
from app.engine.compiled.engine import compile_program
from app.engine.compiled.program import CompiledProgram


def compiled(*fetch: str) -> CompiledProgram:
    native = compile_program(static.default_main_program(), list(fetch))
    assert isinstance(native, CompiledProgram)
    return native


def network(layers: int, width: int = 32) -> app.static.Variable:
    x = static.data("x", [None, width])
    for _ in range(layers):
        x = app.tanh(static.nn.fc(x, width))
    loss = app.mean(x)
    app.optimizer.SGD(0.1).minimize(loss)
    return loss


def test_an_iteration_of_a_small_network_meets_once():
    native = compiled(network(2).name)
    assert [step.must_meet for step in native.lowered.steps].count(True) == 1


def test_an_input_of_which_only_the_shape_is_read_is_not_waited_for():
    x = static.data("x", [None, 32])
    total = app.sum(app.tanh(x), axis=0)
    spread = app.exp(app.zeros_like(x))
    native = compiled(total.name, spread.name)
    order = [step.op.type for step in native.lowered.steps]
    assert order.index("sum") > max(i for i, kind in enumerate(order) if "exp" in kind)


@pytest.mark.parametrize(
    ("product", "waits"),
    [
        (lambda y, other: app.matmul(y, other), False),
        (lambda y, other: app.matmul(y, other, transpose_x=True), True),
        (lambda y, other: app.matmul(other, y), True),
        (lambda y, other: app.matmul(y, y), True),
        (lambda y, other: app.matmul(y, y, transpose_y=True), True),
    ],
)
def test_a_product_waits_for_a_matrix_of_which_a_row_of_the_result_needs_all_rows(product: Any, waits: bool):
    x, other = static.data("x", [32, 32]), static.data("other", [32, 32])
    native = compiled(product(app.tanh(x), other).name)
    assert [(step.op.type, step.must_meet) for step in native.lowered.steps] == [("tanh", False), ("matmul", waits)]


def test_what_one_thread_does_alone_needs_no_barrier_between_its_steps():
    x = static.data("x", [None, 8])
    total = app.sum(app.tanh(x))
    again = app.sum(total * total)
    native = compiled(again.name)
    alone = [step for step in native.lowered.steps if step.is_alone and not step.is_free]
    assert len(alone) == 3
    assert [step.must_meet for step in alone] == [True, False, False]


def test_threads_share_out_the_steps_of_adam():
    x = static.data("x", [None, 32])
    loss = app.mean(static.nn.fc(x, 32))
    app.optimizer.Adam(0.1).minimize(loss)
    steps = [step for step in compiled(loss.name).lowered.steps if "adam" in step.op.type]
    assert [step.is_alone for step in steps] == [False, False]


def test_layers_that_are_alike_share_their_compiled_function():
    native = compiled(network(32).name)
    assert len(native.source.parts) > 60
    assert len({part.name for part in native.source.parts}) <= 20
    assert native.source.text.count("def part_") == len({part.name for part in native.source.parts})


def test_a_problem_in_a_late_part_is_told_with_its_operator():

    x, label = static.data("x", [None, 32]), static.data("label", [None, 1], "int64")
    for _ in range(32):
        x = app.tanh(static.nn.fc(x, 32))
    loss = app.nn.functional.cross_entropy(x, label)
    app.optimizer.SGD(0.1).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    native = compiled(loss.name)
    assert len(native.source.parts) > 60
    feed = {"x": np.ones((4, 32), np.float32), "label": np.full((4, 1), 77)}
    with pytest.raises(app.errors.AppError, match=r"softmax_with_cross_entropy.*label"):
        exe.run(feed=feed, fetch_list=[loss])


def test_no_part_of_a_long_program_is_long():
    x = static.data("x", [None, 32])
    for _ in range(3):
        x = app.tanh(static.nn.fc(x, 32))
    totals = [app.sum(x * float(i)) for i in range(90)]
    native = compiled(*(total.name for total in totals))
    assert max(len(part.steps) for part in native.source.parts) <= parts.LIMIT
