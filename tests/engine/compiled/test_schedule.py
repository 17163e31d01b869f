"""Steps are ordered so that threads seldom have to wait for one another, and parts so that alike layers share code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from both_engines import agree, compiled
from plain_source import PlainEngine

import app
from app import static
from app.engine.compiled import parts


def test_threads_meet_once_in_an_iteration_of_a_small_network():
    loss = app.mean(app.tanh(static.nn.fc(app.tanh(static.nn.fc(static.data("x", [None, 32]), 32)), 32)))
    app.optimizer.SGD(0.1).minimize(loss)
    native = compiled(loss)
    assert [step.must_meet for step in native.lowered.steps].count(True) == 1


def test_threads_do_not_wait_for_an_input_of_which_only_the_shape_is_read():
    x = static.data("x", [None, 32])
    total = app.sum(app.tanh(x), axis=0)
    spread = app.exp(app.zeros_like(x))
    native = compiled(total, spread)
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
    native = compiled(product(app.tanh(x), other))
    assert [(step.op.type, step.must_meet) for step in native.lowered.steps] == [("tanh", False), ("matmul", waits)]


def test_steps_that_one_thread_does_alone_need_no_barrier_between_them():
    x = static.data("x", [None, 8])
    total = app.sum(app.tanh(x))
    again = app.sum(total * total)
    native = compiled(again)
    alone = [step for step in native.lowered.steps if step.is_alone and not step.is_free]
    assert len(alone) == 3
    assert [step.must_meet for step in alone] == [True, False, False]


def test_a_thread_that_calls_a_function_writes_no_rows_of_another():
    """Of a batch of a fixed size, in memory that the gradient is written to afterwards."""
    x = static.data("x", [32, 3], "float64")
    x.stop_gradient = False
    y = app.log_softmax(x)
    fetch = static.gradients([app.sum(app.tanh(y) * y)], [x])
    agree(fetch, {"x": np.random.default_rng(0).uniform(-1, 1, (32, 3))}, compiles=False)


def test_threads_share_out_the_steps_of_adam():
    x = static.data("x", [None, 32])
    loss = app.mean(static.nn.fc(x, 32))
    app.optimizer.Adam(0.1).minimize(loss)
    steps = [step for step in compiled(loss).lowered.steps if "adam" in step.op.type]
    assert [step.is_alone for step in steps] == [False, False]


@pytest.mark.slow
def test_layers_that_are_alike_share_a_function_and_errors_in_late_parts_name_the_operator():
    x, label = static.data("x", [None, 32]), static.data("label", [None, 1], "int64")
    for _ in range(6):
        x = app.tanh(static.nn.fc(x, 32))
    loss = app.nn.functional.cross_entropy(x, label)
    app.optimizer.SGD(0.1).minimize(loss)
    source = compiled(loss).source
    functions = {part.name for part in source.parts}
    assert len(source.parts) > 2 * len(functions)
    assert len(functions) == source.text.count("def part_")
    executor = static.Executor()
    executor.run(static.default_startup_program())
    executor._engine = PlainEngine(shards=2)
    feed = {"x": np.ones((4, 32), np.float32), "label": np.full((4, 1), 77)}
    with pytest.raises(app.errors.AppError, match=r"softmax_with_cross_entropy.*label"):
        executor.run(feed=feed, fetch_list=[loss])


def test_no_part_of_a_long_program_is_long():
    x = static.data("x", [None, 32])
    for _ in range(3):
        x = app.tanh(static.nn.fc(x, 32))
    totals = [app.sum(x * float(i)) for i in range(90)]
    native = compiled(*totals)
    assert max(len(part.steps) for part in native.source.parts) <= parts.LIMIT
