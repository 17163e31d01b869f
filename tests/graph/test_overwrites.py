"""Operators that write to a variable which has a value already: that value goes on under another name, or is missed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.engine.compiled.passes import PASSES
from app.errors import InPlaceError, ProgramError
from app.graph.passes import optimise
from app.graph.program import Program

ENGINES = ("reference", "compiled")
COMPILED_IN_SOAK = ("reference", pytest.param("compiled", marks=pytest.mark.soak))
X = np.array([0.0, 1.0, 2.0], "float32")
E = np.exp(X)


@pytest.fixture(autouse=True)
def static_mode() -> Any:
    app.enable_static()
    yield
    app.disable_static()


def data(name: str = "x", *shape: Any) -> static.Variable:
    variable = static.data(name, list(shape) or [3])
    variable.stop_gradient = False
    return variable


def parameter() -> Any:
    return static.create_parameter([3], "float32", default_initializer=app.nn.initializer.Constant(2.0))


def run(fetch: Any, engine: str = "reference", program: Program | None = None, **feed: Any) -> Any:
    executor = static.Executor(engine=engine)
    executor.run(static.default_startup_program())
    return executor.run(program, feed=feed or {"x": X}, fetch_list=fetch)


# --- What a Program does not keep ---


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_use_the_value_from_before_the_overwrite(engine: str):
    x = data()
    h = app.exp(x)
    y = h * h
    app.assign(x * 0.0, output=h)
    (dx,) = static.gradients(app.mean(y), x)
    dx, h, y = run([dx, h, y], engine)
    np.testing.assert_allclose(dx, 2 * E * E / 3, rtol=1e-6)
    np.testing.assert_allclose(y, E * E, rtol=1e-6)
    np.testing.assert_array_equal(h, 0)


def test_the_old_value_has_a_name_of_its_own():
    x = data()
    h = app.exp(x)
    app.assign(x, output=h)
    app.assign(h + h, output=h)
    ops = static.default_main_program().global_block().ops
    assert [op.outputs[0] for op in ops] == ["exp.out_0@0", "exp.out_0@1", "add.out_0", "exp.out_0"]


@pytest.mark.parametrize("engine", COMPILED_IN_SOAK)
def test_another_view_of_the_old_value_keeps_it(engine: str):
    x = data()
    h = app.exp(x)
    y = app.reshape(h, [3, 1])
    app.assign(x, output=h)
    y, h = run([y * 2.0, h], engine)
    np.testing.assert_allclose(y, 2 * E[:, None], rtol=1e-6)
    np.testing.assert_array_equal(h, X)


def test_the_gradient_of_an_overwritten_variable_is_that_of_what_it_is_now():
    x = data()
    h = app.exp(x)
    y = h * h
    app.assign(x * 3.0, output=h)
    z = h * h
    assert static.gradients(app.sum(y), h) == [None]
    (dh,) = run(static.gradients(app.sum(z), h))
    np.testing.assert_allclose(dh, 6 * X)


def test_gradients_flow_into_what_was_a_constant():
    x = data()
    out = app.full([3], 1.0)
    before = app.exp(out)
    app.assign(x * 2.0, output=out)
    y = out * out + x
    dx, before = run([*static.gradients(app.sum(y), x), before])
    np.testing.assert_allclose(dx, 8 * X + 1)
    np.testing.assert_allclose(before, np.full(3, np.e), rtol=1e-6)


@pytest.mark.parametrize("engine", COMPILED_IN_SOAK)
def test_a_choice_overwrites_in_either_branch(engine: str):
    x = data()
    out = app.full([3], 1.0)
    y = x * out
    static.nn.cond(app.sum(x) > 0.0, lambda: app.assign(x * 2.0, output=out), lambda: app.assign(x * 3.0, output=out))
    app.assign(out * out, output=out)
    dx, y = run([*static.gradients(app.sum(out + y), x), y], engine)
    np.testing.assert_allclose(dx, 8 * X + 1)
    np.testing.assert_array_equal(y, X)


def test_a_loop_makes_a_constant_depend_on_what_it_carries():
    x = data()
    total, last = x * 1.0, app.full([3], 0.5)
    squashed = app.full([3], 0.0)

    def body(i: Any) -> Any:
        app.assign(app.square(last), output=squashed)  # a constant at first, and later what depends on x
        app.assign(total * 2.0, output=last)
        app.assign(total + squashed.detach() * 0.0, output=total)
        return [i + 1]

    static.nn.while_loop(lambda i: i < 2, body, [app.full([], 0, "int64")])
    (dx,) = run(static.gradients(app.sum(squashed), x))
    np.testing.assert_allclose(dx, 8 * X)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_py_func_overwrites(engine: str):
    x = data()
    out = app.exp(x)
    y = out * out
    static.py_func(lambda a: a + 1, x, out)
    dx, out = run([*static.gradients(app.sum(y), x), out], engine)
    np.testing.assert_allclose(dx, 2 * E * E, rtol=1e-6)
    np.testing.assert_array_equal(out, X + 1)


def test_passes_take_an_overwritten_name_for_two_values():
    x = data()
    h = app.full([3], 2.0)
    first = x * h
    app.assign(app.full([3], 5.0), output=h)
    second = x * h
    program = static.default_main_program()
    for found in (program, optimise(program, {first.name, second.name}, PASSES)):
        a, b = run([first, second], program=found)
        np.testing.assert_array_equal(a, 2 * X)
        np.testing.assert_array_equal(b, 5 * X)


def test_a_written_program_and_a_clone_have_one_writer_for_each_name():
    from app.graph.serialise import program_from_data, program_to_data

    x = data()
    h = app.exp(x)
    y = h * h
    app.assign(x, output=h)
    program = static.default_main_program()
    for copied in (program.clone(), program.clone(for_test=True), program_from_data(program_to_data(program))):
        a, b = run([y.name, h.name], program=copied)
        np.testing.assert_allclose(a, E * E, rtol=1e-6)
        np.testing.assert_array_equal(b, X)


def test_a_clone_for_use_does_not_take_an_old_value_for_one_that_the_backward_pass_made():
    x = data()
    h = app.exp(x)
    (dx,) = static.gradients(app.sum(h * h), x)
    app.assign(dx, output=h)
    used = static.default_main_program().clone(for_test=True)
    with pytest.raises(ProgramError, match="no variable"):
        run([h], program=used)


def test_a_file_with_two_writers_of_a_name_is_refused():
    from app.graph.serialise import program_from_data, program_to_data

    app.assign(app.tanh(data()), output=app.exp(data("y")))
    written = program_to_data(static.default_main_program())
    for op in written["blocks"][0]["operators"]:
        op["outputs"] = [name.replace("@0", "") for name in op["outputs"]]
    with pytest.raises(ProgramError, match=r"this is not a Program: ValueError two operators write to exp.out_0"):
        program_from_data(written)


def test_what_is_fed_and_was_not_read_needs_no_feed_after_it_is_overwritten():
    x = static.data("x", [2])
    app.assign(np.ones(2, "float32"), output=x)
    assert static.Executor().run(feed={}, fetch_list=[x * 3.0])[0].tolist() == [3.0, 3.0]


def test_what_is_fed_and_was_read_is_not_overwritten():
    x = data()
    app.exp(x)
    with pytest.raises(ProgramError, match=r"operator assign cannot write to x, which is fed and was read before"):
        app.assign(x * 2.0, output=x)


def test_a_variable_keeps_its_kind():
    x = data()
    h = app.exp(x)
    with pytest.raises(ProgramError, match=r"returns int64\[3\], which cannot be written to exp.out_0 of float32\[3\]"):
        app.assign(app.cast(x, "int64"), output=h)
    with pytest.raises(ProgramError, match=r"returns float32\[\], which cannot be written to exp.out_0"):
        app.assign(app.sum(x), output=h)


def test_a_tensor_is_not_written_to_when_a_program_runs():
    tensor = app.to_tensor([1.0, 2.0, 3.0])
    with pytest.raises(ProgramError, match="it cannot write to a Tensor, which has its value now"):
        app.assign(data(), output=tensor)


# --- What a Program keeps: changed in place, and refused where the old value is missed ---


def test_gradients_that_need_a_parameter_from_before_its_update_are_refused():
    x, w = data(), parameter()
    first, second = app.sum(w * w * x), app.sum(w * x * w)
    app.optimizer.SGD(0.1).minimize(first)
    says = (
        rf"the gradient of operator multiply \(.*\) needs the value that {w.name} had there, "
        r"but operator sgd \(test_overwrites.py:\d+\) has written another one to it since"
    )
    with pytest.raises(InPlaceError, match=says):
        static.gradients(second, w)


def test_gradients_of_a_loss_that_is_built_after_an_update_use_the_new_values():
    x, w = data(), parameter()
    app.optimizer.SGD(0.1).minimize(app.sum(w * w * x))
    (dw,) = run(static.gradients(app.sum(w * x * w), w))
    np.testing.assert_allclose(dw, 2 * X * (2 - 0.4 * X), rtol=1e-6)


def test_gradients_that_need_no_old_value_are_given_after_an_update():
    x, w = data(), parameter()
    loss, other = app.sum(w * x), app.sum(w + x)
    app.optimizer.SGD(0.1).minimize(loss)
    (dw,) = run(static.gradients(other, w))
    np.testing.assert_array_equal(dw, 1)


def test_a_gradient_of_a_parameter_before_and_after_its_update_at_once_is_refused():
    x, w = data(), parameter()
    before = app.sum(w + x)
    app.optimizer.SGD(0.1).minimize(app.sum(w * x))
    with pytest.raises(InPlaceError, match="its gradient is ambiguous"):
        static.gradients(before + app.sum(w), w)


def test_a_counter_that_is_kept_and_a_rate_hinder_no_gradient():
    x = data()
    count = static.create_global_var([1], 0.0, "float32", persistable=True)
    y = app.exp(x) * count
    app.assign(app.increment(count), output=count)
    (dx,) = run(static.gradients(app.sum(app.exp(x)), x))
    np.testing.assert_allclose(dx, E, rtol=1e-6)
    with pytest.raises(InPlaceError, match=rf"needs the value that {count.name} had there"):
        static.gradients(app.sum(y), x)


def test_running_statistics_hinder_no_gradient():
    x = static.data("x", [None, 3])
    x.stop_gradient = False
    layer = app.nn.BatchNorm1D(3)
    loss = app.sum(app.square(layer(layer(x))))
    (dx,) = static.gradients(loss, x)
    (dx,) = run([dx], x=np.stack([X, X * X, E]))
    assert np.isfinite(dx).all()


# --- Names ---


def test_renaming_reaches_every_operator_and_every_open_block():
    x = data()
    h = app.exp(x)
    program = static.default_main_program()
    app.optimizer.SGD(0.1).minimize(app.sum(parameter() * h))
    (rate,) = program.schedulers
    program.global_block().rename_var(h.name, "hidden")
    program.global_block().rename_var(rate, "rate")
    assert list(program.schedulers) == ["rate"]
    assert h.name == "hidden"
    with program.sub_block() as inner:
        app.exp(h)
        program.global_block().rename_var("hidden", "again")
        assert inner.ops[0].inputs == ("again",)
    assert all("hidden" not in (*op.inputs, *op.outputs) for op in program.global_block().ops)
    with pytest.raises(ProgramError, match="cannot be renamed to x: a variable of that name exists already"):
        program.global_block().rename_var("again", "x")
