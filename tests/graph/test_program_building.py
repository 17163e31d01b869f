"""Blocks and Variables, the default Programs and modes, errors met while building, and how Programs are printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import DtypeError, OperatorError, ProgramError
from app.graph import defaults, dynamic_mode, static_mode, static_unless_chosen


def block() -> static.Block:
    return static.default_main_program().current_block()


# --- Default Programs and modes ---


def test_statements_build_into_the_programs_of_the_innermost_guard():
    outer_main, outer_startup = static.default_main_program(), static.default_startup_program()
    main, startup, inner = static.Program(), static.Program(), static.Program()
    with static.program_guard(main, startup):
        assert (static.default_main_program(), static.default_startup_program()) == (main, startup)
        with static.program_guard(inner):
            static.nn.fc(static.data("x", [None, 2]), 1)
            assert static.default_startup_program() is startup
        with pytest.raises(KeyError), static.program_guard(static.Program()):
            raise KeyError
        assert static.default_main_program() is main
        assert inner.global_block().has_var("x")
        assert len(startup.global_block().ops) == 2
        assert not main.global_block().vars
    assert (static.default_main_program(), static.default_startup_program()) == (outer_main, outer_startup)
    assert not outer_main.global_block().vars


def test_an_operator_is_appended_to_the_program_of_its_inputs():
    x = static.data("x", [2])
    other = static.Program()
    with static.program_guard(other):
        y = x + 1.0
    assert y.program is x.program
    assert not other.global_block().ops


def test_the_mode_decides_where_no_input_has_a_value_and_can_be_chosen_for_a_block(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(defaults, "_static", None)  # as in a program that never chose a mode
    assert app.in_dynamic_mode()
    with static_unless_chosen():
        assert not app.in_dynamic_mode()
    assert isinstance(app.ones([2]), app.Tensor)
    assert isinstance(static.data("x", [2]) + 1, static.Variable)
    app.enable_static()
    assert not app.in_dynamic_mode()
    assert isinstance(app.ones([2]), static.Variable)
    assert isinstance(app.to_tensor([1.0]) + 1, app.Tensor)
    with dynamic_mode():
        assert app.in_dynamic_mode()
        with static_unless_chosen():
            assert app.in_dynamic_mode()
    assert not app.in_dynamic_mode()
    app.disable_static()
    with static_unless_chosen():
        assert app.in_dynamic_mode()
    with static_mode():
        assert not app.in_dynamic_mode()
    assert app.in_dynamic_mode()


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
    assert program.num_blocks == 1
    assert program.block(0) is program.global_block() is program.current_block()
    assert program.to_string() == str(program)
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
    assert (op.type, op.input_arg_names, op.output_arg_names) == ("matmul", ["x", "y"], ["matmul.out_0"])
    assert op.attr_names == ["transpose_x", "transpose_y"]
    assert (op.attr("transpose_x"), op.attr("transpose_y")) == (False, True)


# --- Shapes, types and gradients are known while building ---


def test_results_need_a_gradient_where_an_input_does_and_the_operator_has_one():
    x = static.data("x", [2])
    assert x.stop_gradient
    assert (x * 2.0).stop_gradient
    x.stop_gradient = False
    assert not (x * 2.0).stop_gradient
    assert (x > 0).stop_gradient
    assert app.cast(x, "int64").stop_gradient
    assert x.detach().stop_gradient


def test_numbers_and_arrays_become_constants_of_the_exact_value():
    x = static.data("x", [2, 3])
    row = np.arange(3, dtype="float32")
    product = app.custom_op(lambda a, b: a * b, name="product")
    out = [x * 2, 1.5 - x, x + row, np.ones((2, 3), "float32") / x, product(x, 0.5), x * 0.1]
    assert all(isinstance(o, static.Variable) and o.dtype == "float32" for o in out)
    assert "value=0.1" in str(x.block.ops[-2])
    np.testing.assert_array_equal(product(app.ones([2]), 0.5).numpy(), [0.5, 0.5])
    feed = np.array([[1, 2, 4], [1, 2, 4]], "float32")
    values = static.Executor().run(feed={"x": feed}, fetch_list=out)
    wanted = [feed * 2, 1.5 - feed, feed + row, 1 / feed, feed * 0.5, feed * np.float32(0.1)]
    for value, expected in zip(values, wanted, strict=True):
        np.testing.assert_array_equal(value, expected)
    wide = static.py_func(lambda a, n: a + n, [x, 3], static.InputSpec([2, 3]))
    with pytest.raises(DtypeError, match="float64"):  # as NumPy adds int64 to float32
        static.Executor().run(feed={"x": feed}, fetch_list=[wide])


def test_a_tensor_and_a_variable_cannot_be_mixed():
    x, t = static.data("x", [2]), app.ones([2])
    with pytest.raises(ProgramError, match="a Tensor cannot be an input of an operator in a Program"):
        x + t
    with pytest.raises((ProgramError, OperatorError), match=r"mixed|cannot be an input"):
        app.concat([t, x])


# --- A Variable has no value while the Program is built ---

NO_VALUE = "variable x has no value while the Program is built"
NO_BRANCH = "has no value while the Program is built, so Python cannot branch on it"
NO_EQUALITY = r"result of ==, which on Variables is app.equal\(x, y\)|app.equal\(y, x\)"


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


def test_variables_are_hashed_and_compared_by_identity():
    x, y = static.data("x", [1]), static.data("y", [1])
    assert x in [x, y]
    assert {x: 1, y: 2}[y] == 2
    assert {x, y, x} == {y, x}
    assert x != "x"
    assert (x == None) is False  # noqa: E711 - the comparison is what is tested
    assert isinstance(x == y, static.Variable)


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


def test_a_printed_operator_names_its_line_and_is_cut_where_long():
    static.py_func(lambda v: None, static.data("x", [3]), None)
    with static_mode():
        app.arange(0, 1000)
    lines = str(static.default_main_program()).splitlines()
    assert any("    py_func.<lambda>(x)  // test_program_building.py:" in line for line in lines)
    assert max(map(len, lines)) < 420
