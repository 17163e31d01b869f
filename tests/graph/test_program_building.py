"""Blocks and Variables, errors met while building, how Programs are printed, and their copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import DtypeError, ProgramError


def block() -> static.Block:
    return static.default_main_program().current_block()


# --- Variables ---


def test_a_variable_has_a_name_a_shape_and_a_type():
    variable = block().create_var("v", [None, 3], "float64", persistable=True)
    assert (variable.name, variable.shape, variable.dtype, variable.persistable) == ("v", (-1, 3), "float64", True)
    assert (variable.ndim, variable.grad_name, variable.stop_gradient) == (2, "v@GRAD", False)
    assert variable.program is static.default_main_program()
    assert repr(variable) == "var v : float64[-1, 3] persistable"
    assert block().create_var(shape=[1]).name != block().create_var(shape=[1], dtype=float).name
    with pytest.raises(DtypeError, match="'floaty' is not an element type; expected one of bool, uint8"):
        block().create_var("w", [1], "floaty")


def test_creating_an_existing_variable_returns_it_unless_shape_type_or_kind_differ():
    x = static.data("x", [None, 3])
    assert block().create_var("x", [-1, 3]) is x
    static.nn.fc(x, 2)
    weight, _ = static.default_main_program().all_parameters()
    assert block().create_var(weight.name, weight.shape) is weight
    assert len(static.default_main_program().all_parameters()) == 2
    says = r"variable x exists already as float32\[-1, 3\]; it cannot be "
    with pytest.raises(ProgramError, match=says + r"float32\[3\]"):
        static.data("x", [3])
    with pytest.raises(ProgramError, match=says + r"int64\[-1, 3\]"):
        block().create_var("x", [None, 3], "int64")
    with pytest.raises(ProgramError, match="variable x exists already, and is not a parameter"):
        block().create_parameter("x", [-1, 3])


def test_blocks_and_variables_are_looked_up():
    x, program = static.data("x", [2]), static.default_main_program()
    assert len(program.blocks) == 1
    assert program.block(0) is program.global_block() is program.current_block()
    assert block().var("x") is x
    assert block().has_var("x")
    assert block().find_var("z") is None
    with pytest.raises(ProgramError, match="block 0 has no variable 'z'; it has x"):
        block().var("z")
    with pytest.raises(ProgramError, match="it has none"):
        static.Program().global_block().var("z")


def test_an_operator_has_names_of_variables_and_settings():
    app.matmul(static.data("x", [2, 3]), static.data("y", [2, 3]), transpose_y=True)
    (op,) = static.default_main_program().global_block().ops
    assert (op.type, op.inputs, op.outputs) == ("matmul", ("x", "y"), ("matmul.out_0",))
    assert list(op.attributes) == ["transpose_x", "transpose_y"]
    assert (op.attr("transpose_x"), op.attr("transpose_y")) == (False, True)


# --- A Variable has no value while the Program is built ---

NO_VALUE = "variable x has no value while the Program is built"
NO_BRANCH = "has no value while the Program is built, so Python cannot branch on it"
NO_EQUALITY = r"result of ==, which on Variables is opsmith.equal\(x, y\)|opsmith.equal\(y, x\)"


@pytest.mark.parametrize(
    ("use", "message"),
    [
        *((use, NO_VALUE) for use in (np.array, np.asarray, float, int)),
        (lambda x: [0][x], NO_VALUE),
        (lambda x: static.Executor().run(feed={"x": x}), NO_VALUE),
        (lambda x: bool(x > 0), NO_BRANCH),
        (lambda x: x and 1, NO_BRANCH),
        (lambda x: [i for i in (1, 2) if x], NO_BRANCH),
        (lambda x: bool(x == static.data("y", [1])), NO_EQUALITY),
        (lambda x: static.data("y", [1]) in [x], NO_EQUALITY),
        (lambda x: [x].index(static.data("y", [1])), NO_EQUALITY),
    ],
)
def test_python_cannot_use_the_value_of_a_variable(use: Any, message: str):
    with pytest.raises(ProgramError, match=message):
        use(static.data("x", [1]))


# --- Printing ---


def test_a_printed_program_has_variables_with_flags_and_operators_by_role():
    loss = app.mean(static.nn.fc(static.data("x", [None, 3]), 2, bias_attr=False))
    app.optimizer.Momentum(0.1).minimize(loss)
    variables, *roles = str(static.default_main_program()).split("\n\n")
    assert variables.splitlines()[:3] == [
        "{ // block 0",
        "    var x : float32[-1, 3] data stop_gradient",
        "    param fc_0.w_0 : float32[3, 2] persistable",
    ]
    assert [part.splitlines()[0] for part in roles] == [
        f"    // {role}" for role in ("forward", "backward", "optimize")
    ]
    assert [len(part.splitlines()) for part in (variables, *roles)] == [10, 3, 4, 3]
    update = "fc_0.w_0, fc_0.w_0_velocity_0 = momentum(fc_0.w_0, fc_0.w_0@GRAD, learning_rate_0, fc_0.w_0_velocity_0)"
    assert roles[-1] == f"    // optimize\n    {update}\n}}"


# --- Copies ---


def test_a_clone_for_test_is_the_program_before_minimize():
    x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
    scores = static.nn.fc(static.nn.fc(x, 5, activation="relu"), 3)
    loss, program = app.nn.functional.cross_entropy(scores, label), static.default_main_program()
    before = program.clone()
    app.optimizer.Momentum(0.1).minimize(loss)
    test = program.clone(for_test=True)
    assert test.equals(before)
    assert test.schedulers == {}


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
