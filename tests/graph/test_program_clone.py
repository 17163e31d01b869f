"""Copies of a Program: whole ones, and those for testing, without the backward pass and the update."""

from __future__ import annotations

from typing import Any

import numpy as np

import app
from app import static
from app.graph.program import FORWARD
from app.graph.variable import Parameter


def trained() -> tuple[static.Program, Any]:
    x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
    scores = static.nn.fc(static.nn.fc(x, 5, activation="relu"), 3)
    loss = app.nn.functional.cross_entropy(scores, label)
    app.optimizer.Momentum(0.1).minimize(loss)
    return static.default_main_program(), loss


def test_a_clone_is_equal_and_of_its_own():
    program, _ = trained()
    copy = program.clone()
    assert copy.equals(program)
    assert str(copy) == str(program)

    copy.global_block().create_var("more", [2])
    assert not program.global_block().has_var("more")
    assert not copy.equals(program)

    copy = program.clone()
    app.mean(copy.global_block().var("add.out_0"))
    assert not copy.equals(program)
    assert len(program.global_block().ops) == len(copy.global_block().ops) - 1


def test_variables_and_attributes_of_a_clone_belong_to_it_and_keep_their_kind():
    program, _ = trained()
    copy = program.clone()
    assert all(v.program is copy for v in copy.list_vars())
    assert [p.name for p in copy.all_parameters()] == [p.name for p in program.all_parameters()]
    assert all(isinstance(p, Parameter) for p in copy.all_parameters())
    copy.global_block().var("x").stop_gradient = False
    copy.global_block().ops[0].attributes["transpose_x"] = True
    assert program.global_block().var("x").stop_gradient
    assert not program.global_block().ops[0].attributes["transpose_x"]


def test_a_clone_for_test_has_no_backward_pass_no_update_and_none_of_their_variables():
    program, loss = trained()
    test = program.clone(for_test=True)
    assert {op.role for op in test.global_block().ops} == {FORWARD}
    assert [str(op) for op in test.global_block().ops] == [
        str(op) for op in program.global_block().ops if op.role == FORWARD
    ]
    assert program.clone().schedulers == program.schedulers
    assert test.schedulers == {}
    names = [v.name for v in test.list_vars()]
    assert loss.name in names
    assert not [name for name in names if "@GRAD" in name or "velocity" in name or "learning_rate" in name]


def test_a_clone_for_test_leaves_the_parameters_alone_and_sees_their_new_values():
    program, loss = trained()
    test = program.clone(for_test=True)
    executor = static.Executor()
    executor.run(static.default_startup_program())
    feed = {"x": np.ones((2, 4), "float32"), "label": np.array([[0], [2]])}
    first = executor.run(test, feed, [loss])[0]
    assert executor.run(test, feed, [loss])[0] == first
    executor.run(program, feed, [loss])
    assert executor.run(test, feed, [loss])[0] < first


def test_a_clone_for_test_keeps_debugging_taps_and_data_that_nothing_reads():
    seen: list[float] = []
    x = static.data("x", [2])
    static.data("unread", [2])
    loss = app.mean(x)
    static.py_func(lambda v: seen.append(float(v)), loss, None)
    test = static.default_main_program().clone(for_test=True)
    assert [op.type for op in test.global_block().ops] == ["mean", "py_func.<lambda>"]
    assert test.global_block().has_var("unread")
    static.Executor().run(test, {"x": np.array([1, 3], "float32")})
    assert seen == [2.0]


def test_a_clone_made_before_minimize_is_what_a_clone_for_test_is_after_it():
    x = static.data("x", [None, 4])
    loss = app.mean(static.nn.fc(x, 2))
    before = static.default_main_program().clone()
    app.optimizer.SGD(0.1).minimize(loss)
    assert static.default_main_program().clone(for_test=True).equals(before)


def test_a_clone_goes_on_drawing_the_random_numbers_that_the_original_would():
    static.default_main_program().random_seed = 3
    app.enable_static()
    try:
        first = app.rand([2])
        copy = static.default_main_program().clone()
        second = app.rand([2])
        with static.program_guard(copy):
            second_of_copy = app.rand([2])
    finally:
        app.disable_static()
    executor = static.Executor()
    a, b = executor.run(fetch_list=[first, second])
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(executor.run(copy, fetch_list=[second_of_copy])[0], b)


def test_equality_and_hash_of_programs_agree():
    program = static.default_main_program()
    copy = program.clone()
    assert copy.equals(program)
    assert copy != program  # as dictionaries and sets take it, too
    assert len({program, copy, program}) == 2
    with static.program_guard(program):
        app.tanh(static.data("after", [2]))
    assert not copy.equals(program)
    first, second = (p.global_block().ops for p in (program, program.clone()))
    assert first[-1].equals(second[-1])
    assert first[-1] not in second
