"""Blocks and Variables by hand, the default Programs, and the errors met while building."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import DtypeError, OperatorError, ProgramError, ShapeError
from app.graph import static_mode


def block() -> static.Block:
    return static.default_main_program().current_block()


# --- Default Programs ---


def test_statements_build_into_the_programs_of_the_innermost_guard():
    outer_main, outer_startup = static.default_main_program(), static.default_startup_program()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        assert static.default_main_program() is main
        assert static.default_startup_program() is startup
        inner = static.Program()
        with static.program_guard(inner):
            static.nn.fc(static.data("x", [None, 2]), 1)
            assert static.default_startup_program() is startup
        assert inner.global_block().has_var("x")
        assert len(startup.global_block().ops) == 2
        assert not main.global_block().vars
    assert static.default_main_program() is outer_main
    assert static.default_startup_program() is outer_startup
    assert not outer_main.global_block().vars


def test_a_guard_is_left_when_the_block_raises():
    outside = static.default_main_program()
    with pytest.raises(KeyError), static.program_guard(static.Program()):
        raise KeyError
    assert static.default_main_program() is outside


def test_an_operator_goes_to_the_program_of_its_inputs_whatever_the_default_is():
    x = static.data("x", [2])
    other = static.Program()
    with static.program_guard(other):
        y = x + 1.0
    assert y.program is x.program
    assert not other.global_block().ops


def test_static_mode_decides_only_where_there_is_no_value_to_go_by():
    assert app.in_dynamic_mode()
    with static_mode():
        assert not app.in_dynamic_mode()
        assert isinstance(app.ones([2]), static.Variable)
        assert isinstance(app.to_tensor([1.0]) + 1, app.Tensor)
    assert isinstance(app.ones([2]), app.Tensor)
    assert isinstance(static.data("x", [2]) + 1, static.Variable)


# --- Variables ---


def test_a_variable_says_what_it_is():
    variable = block().create_var("v", [None, 3], "float64", persistable=True)
    assert (variable.name, variable.shape, variable.dtype, variable.persistable) == ("v", (-1, 3), "float64", True)
    assert (variable.ndim, variable.grad_name, variable.stop_gradient) == (2, "v@GRAD", False)
    assert variable.program is static.default_main_program()
    assert repr(variable) == "var v : float64[-1, 3] persistable"


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), float])
def test_an_element_type_can_be_written_in_many_ways(dtype: Any):
    assert block().create_var("v", [1], dtype).dtype == "float32"


def test_an_unknown_element_type_is_an_error():
    with pytest.raises(DtypeError, match="'floaty' is not an element type; expected one of bool, uint8"):
        block().create_var("v", [1], "floaty")


def test_a_name_that_is_taken_cannot_get_another_shape_or_type():
    block().create_var("v", [2, 3])
    with pytest.raises(ProgramError, match=r"variable v exists already as float32\[2, 3\]; it cannot be float32\[3\]"):
        block().create_var("v", [3])
    with pytest.raises(ProgramError, match=r"cannot be int64\[2, 3\]"):
        block().create_var("v", [2, 3], "int64")
    with pytest.raises(ProgramError, match="exists already"):
        static.data("v", [2])


def test_variables_without_a_name_get_one_that_is_free():
    assert block().create_var(shape=[1]).name != block().create_var(shape=[1]).name


def test_looking_up_a_variable():
    x = static.data("x", [2])
    assert block().var("x") is x
    assert block().has_var("x")
    assert block().find_var("z") is None
    with pytest.raises(ProgramError, match="block 0 has no variable 'z'; it has x"):
        block().var("z")
    with pytest.raises(ProgramError, match="it has none"):
        static.Program().global_block().var("z")


def test_the_blocks_of_a_program():
    program = static.default_main_program()
    assert program.num_blocks == 1
    assert program.block(0) is program.global_block() is program.current_block()
    assert program.to_string() == str(program)


# --- Shapes and types are known while building ---


def test_shapes_and_types_of_results_are_inferred_with_unknown_sizes_kept():
    x, w = static.data("x", [None, 3]), static.data("w", [3, 4], "float64")
    assert (x @ w).spec == ((-1, 4), "float64")
    assert (x > 0).spec == ((-1, 3), "bool")
    assert app.reshape(x, [-1, 1, 3]).shape == (-1, 1, 3)
    assert app.argmax(x, axis=1).spec == ((-1,), "int64")
    assert app.concat([x, x], axis=0).shape == (-1, 3)
    assert app.sum(x).shape == ()


def test_shapes_that_do_not_fit_are_an_error_while_building():
    x, w = static.data("x", [None, 3]), static.data("w", [4, 2])
    with pytest.raises(ShapeError, match=r"operator matmul of \(float32\[-1, 3\], float32\[4, 2\]\)"):
        x @ w
    with pytest.raises(ShapeError, match="cannot be broadcast together"):
        static.data("a", [2, 3]) + static.data("b", [2, 4])


def test_results_need_a_gradient_where_an_input_does_and_the_operator_has_one():
    x = static.data("x", [2])
    assert x.stop_gradient
    assert (x * 2.0).stop_gradient
    x.stop_gradient = False
    assert not (x * 2.0).stop_gradient
    assert (x > 0).stop_gradient
    assert app.cast(x, "int64").stop_gradient
    assert x.detach().stop_gradient


# --- What a Variable cannot do, as it has no value ---


@pytest.mark.parametrize("branch", [lambda x: bool(x > 0), lambda x: x and 1, lambda x: [i for i in (1, 2) if x]])
def test_python_cannot_branch_on_a_variable(branch: Any):
    with pytest.raises(ProgramError, match="has no value while the Program is built, so Python cannot branch on it"):
        branch(static.data("x", [1]))


def test_a_tensor_and_a_variable_cannot_be_mixed():
    x, t = static.data("x", [2]), app.ones([2])
    with pytest.raises(ProgramError, match="a Tensor cannot be an input of an operator in a Program"):
        x + t
    with pytest.raises(OperatorError, match="operator add: a Tensor and a Variable were mixed"):
        t + x
    with pytest.raises((ProgramError, OperatorError), match=r"mixed|cannot be an input"):
        app.concat([t, x])


def test_numbers_and_arrays_become_constants():
    x = static.data("x", [2, 3])
    out = [x * 2, 1.5 - x, x + np.arange(3, dtype="float32"), np.ones((2, 3), "float32") / x]
    assert all(isinstance(o, static.Variable) and o.dtype == "float32" for o in out)
    feed = np.array([[1, 2, 4], [1, 2, 4]], "float32")
    values = static.Executor().run(feed={"x": feed}, fetch_list=out)
    wanted = [feed * 2, 1.5 - feed, feed + np.arange(3, dtype="float32"), 1 / feed]
    for value, expected in zip(values, wanted, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_a_program_keeps_the_exact_value_of_a_number_of_its_type():
    x = static.data("x", [1])
    assert "value=0.1" in str((x * 0.1).block.ops[0])
    np.testing.assert_array_equal(
        static.Executor().run(feed={"x": np.ones(1, "float32")}, fetch_list=["multiply.out_0"])[0], np.float32(0.1)
    )


# --- What is said of the lines of a Program ---


def test_an_operator_says_its_variables_and_settings():
    app.matmul(static.data("x", [2, 3]), static.data("y", [2, 3]), transpose_y=True)
    (op,) = static.default_main_program().global_block().ops
    assert (op.type, op.input_arg_names, op.output_arg_names) == ("matmul", ["x", "y"], ["matmul.out_0"])
    assert op.attr_names == ["transpose_x", "transpose_y"]
    assert (op.attr("transpose_x"), op.attr("transpose_y")) == (False, True)


@pytest.mark.parametrize("ask", [lambda x, y: bool(x == y), lambda x, y: y in [x, y], lambda x, y: [x, y].index(y)])
def test_python_cannot_ask_whether_variables_are_equal(ask: Any):
    with pytest.raises(ProgramError, match=r"result of ==, which on Variables is app.equal\(x, y\)|app.equal\(y, x\)"):
        ask(static.data("x", [1]), static.data("y", [1]))


def test_python_tells_variables_apart_by_what_they_are():
    x, y = static.data("x", [1]), static.data("y", [1])
    assert x in [x, y]
    assert {x: 1, y: 2}[y] == 2
    assert {x, y, x} == {y, x}
    assert x is not y
    assert x != "x"
    assert (x == None) is False  # noqa: E711 - the comparison is what is tested
    assert isinstance(x == y, static.Variable)
