"""Operators that write to a variable which has a value already: that value goes on under another name, or is missed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import InPlaceError, ProgramError
from app.graph.program import Program
from app.graph.serialise import program_from_data, program_to_data

ENGINES = ("reference", "compiled")
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


# --- Values of one run ---


def copied(program: Program) -> list[Program]:
    return [program, program.clone(), program_from_data(program_to_data(program))]


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_views_and_copies_use_the_value_from_before_the_overwrite(engine: str):
    x = data()
    h = app.exp(x)
    y, view = h * h, app.reshape(h, [3, 1])
    app.assign(x * 0.5, output=h)
    (dx,) = static.gradients(app.mean(y), x)
    for program in copied(static.default_main_program()):
        found = run([v.name for v in (dx, h, y, view)], engine, program)
        for value, expected in zip(found, [2 * E * E / 3, X * 0.5, E * E, E[:, None]], strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_the_gradient_of_an_overwritten_variable_is_that_of_its_last_value():
    x = data()
    h = app.exp(x)
    y = h * h
    app.assign(x * 3.0, output=h)
    z = h * h
    assert static.gradients(app.sum(y), h) == [None]
    (dh,) = run(static.gradients(app.sum(z), h))
    np.testing.assert_allclose(dh, 6 * X)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_py_func_overwrites(engine: str):
    x = data()
    out = app.exp(x)
    y = out * out
    static.py_func(lambda a: a + 1, x, out)
    dx, out = run([*static.gradients(app.sum(y), x), out], engine)
    np.testing.assert_allclose(dx, 2 * E * E, rtol=1e-6)
    np.testing.assert_array_equal(out, X + 1)


def test_a_clone_for_test_has_no_value_that_the_backward_pass_wrote():
    x = data()
    h = app.exp(x)
    (dx,) = static.gradients(app.sum(h * h), x)
    app.assign(dx, output=h)
    used = static.default_main_program().clone(for_test=True)
    with pytest.raises(ProgramError, match="no variable"):
        run([h], program=used)


def test_data_with_two_writers_of_a_name_are_an_error():
    app.assign(app.tanh(data()), output=app.exp(data("y")))
    written = program_to_data(static.default_main_program())
    for op in written["blocks"][0]["operators"]:
        op["outputs"] = [name.replace("@0", "") for name in op["outputs"]]
    with pytest.raises(ProgramError, match=r"this is not a Program: ValueError two operators write to exp.out_0"):
        program_from_data(written)


def test_data_that_are_overwritten_before_they_are_read_need_not_be_fed():
    x = static.data("x", [2])
    app.assign(np.ones(2, "float32"), output=x)
    assert static.Executor().run(feed={}, fetch_list=[x * 3.0])[0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda x, h: app.assign(h, output=x), "operator assign cannot write to x, which is fed and was read before"),
        (
            lambda x, h: app.assign(app.cast(x, "int64"), output=h),
            r"returns int64\[3\], which cannot be written to exp.out_0 of float32\[3\]",
        ),
        (lambda x, h: app.assign(app.sum(x), output=h), r"returns float32\[\], which cannot be written to exp.out_0"),
        (
            lambda x, h: app.assign(x, output=app.to_tensor([1.0, 2.0, 3.0])),
            "it cannot write to a Tensor, which has its value now",
        ),
    ],
)
def test_wrong_overwrites_are_errors(write: Any, message: str):
    x = data()
    h = app.exp(x)
    with pytest.raises(ProgramError, match=message):
        write(x, h)


# --- Values that persist change in place ---


def test_gradients_that_need_a_parameter_from_before_its_update_are_errors():
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


def test_the_gradient_of_a_parameter_before_and_after_its_update_is_ambiguous():
    x, w = data(), parameter()
    before = app.sum(w + x)
    app.optimizer.SGD(0.1).minimize(app.sum(w * x))
    with pytest.raises(InPlaceError, match="its gradient is ambiguous"):
        static.gradients(before + app.sum(w), w)


def test_a_counter_does_not_prevent_gradients_that_do_not_need_it():
    x = data()
    count = static.create_global_var([1], 0.0, "float32", persistable=True)
    y = app.exp(x) * count
    app.assign(app.increment(count), output=count)
    (dx,) = run(static.gradients(app.sum(app.exp(x)), x))
    np.testing.assert_allclose(dx, E, rtol=1e-6)
    with pytest.raises(InPlaceError, match=rf"needs the value that {count.name} had there"):
        static.gradients(app.sum(y), x)


def test_running_statistics_do_not_prevent_gradients():
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
