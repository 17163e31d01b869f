"""Copies of a Program: whole ones, and those for testing, without the backward pass and the update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.graph.program import Program
from app.graph.variable import Parameter


def loss_of_a_network() -> Any:
    x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
    scores = static.nn.fc(static.nn.fc(x, 5, activation="relu"), 3)
    return app.nn.functional.cross_entropy(scores, label)


@pytest.mark.parametrize(
    "change",
    [
        lambda copy: copy.global_block().create_var("more", [2]),
        lambda copy: app.mean(copy.global_block().var("add.out_0")),
        lambda copy: setattr(copy.global_block().var("x"), "stop_gradient", False),
        lambda copy: copy.global_block().ops[0].attributes.update(transpose_x=True),
    ],
    ids=["variable", "operator", "flag", "attribute"],
)
def test_a_clone_is_equal_and_independent(change: Callable[[Program], Any]):
    app.optimizer.Momentum(0.1).minimize(loss_of_a_network())
    program = static.default_main_program()
    printed, copy = str(program), program.clone()
    assert copy.equals(program)
    assert len({program, copy, program}) == 2
    (first, *_), (second, *_) = program.global_block().ops, copy.global_block().ops
    assert first.equals(second)
    assert first != second
    assert (str(copy), copy.schedulers) == (printed, program.schedulers)
    assert all(v.program is copy for v in copy.list_vars())
    assert [p.name for p in copy.all_parameters()] == [p.name for p in program.all_parameters()]
    assert all(isinstance(p, Parameter) for p in copy.all_parameters())
    change(copy)
    assert not copy.equals(program)
    assert str(program) == printed


def test_a_clone_for_test_is_the_program_before_minimize():
    loss, program = loss_of_a_network(), static.default_main_program()
    before = program.clone()
    app.optimizer.Momentum(0.1).minimize(loss)
    test = program.clone(for_test=True)
    assert test.equals(before)
    assert test.schedulers == {}


def test_a_clone_for_test_changes_no_parameter_and_uses_their_new_values():
    loss, program = loss_of_a_network(), static.default_main_program()
    app.optimizer.Momentum(0.1).minimize(loss)
    test = program.clone(for_test=True)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    feed = {"x": np.ones((2, 4), "float32"), "label": np.array([[0], [2]])}
    first = executor.run(test, feed, [loss])[0]
    assert executor.run(test, feed, [loss])[0] == first
    executor.run(program, feed, [loss])
    assert executor.run(test, feed, [loss])[0] < first


def test_a_clone_for_test_keeps_unread_data_and_taps_but_not_those_on_gradients():
    seen: list[str] = []
    static.data("unread", [2])
    loss = app.mean(static.nn.fc(static.data("x", [None, 2]), 1))
    static.py_func(lambda v: seen.append("loss"), loss, None)
    _, ((weight, gradient), _) = app.optimizer.SGD(0.1).minimize(loss)
    static.py_func(lambda v: seen.append("gradient"), gradient, None)
    static.py_func(lambda v: seen.append("weight"), weight, None)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    test = static.default_main_program().clone(for_test=True)
    assert test.global_block().has_var("unread")
    executor.run(test, {"x": np.ones((1, 2), "float32")})
    assert seen == ["loss", "weight"]


def test_a_clone_continues_the_random_numbers_of_the_original():
    static.default_main_program().random_seed = 3
    with app.graph.static_mode():
        first = app.rand([2])
        copy = static.default_main_program().clone()
        second = app.rand([2])
        with static.program_guard(copy):
            second_of_copy = app.rand([2])
    executor = static.Executor()
    a, b = executor.run(fetch_list=[first, second])
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(executor.run(copy, fetch_list=[second_of_copy])[0], b)


def test_building_again_with_names_counted_from_the_start_gives_an_equal_program():
    def build() -> tuple[Program, Program]:
        programs = Program(), Program()
        with app.graph.names.guard(), static.program_guard(*programs):
            app.optimizer.Adam(0.1).minimize(app.mean(static.nn.fc(static.data("x", [None, 3]), 2, activation="tanh")))
        return programs

    (main, startup), (other_main, other_startup) = build(), build()
    assert main.equals(other_main)
    assert startup.equals(other_startup)
    assert str(main) == str(other_main)
