"""Operators that write to a variable which has a value already: what is refused, and names.

Gradients and values after such operators are held against eager code in test_overwrites_at_random.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import InPlaceError, ProgramError
from app.graph.serialise import program_from_data, program_to_data


@pytest.fixture(autouse=True)
def static_mode() -> Any:
    app.enable_static()
    yield
    app.disable_static()


def data(name: str = "x") -> static.Variable:
    variable = static.data(name, [3])
    variable.stop_gradient = False
    return variable


def parameter() -> Any:
    return static.create_parameter([3], "float32", default_initializer=app.nn.initializer.Constant(2.0))


# --- Values of one run ---


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


def test_the_gradient_of_a_parameter_before_and_after_its_update_is_ambiguous():
    x, w = data(), parameter()
    before = app.sum(w + x)
    app.optimizer.SGD(0.1).minimize(app.sum(w * x))
    with pytest.raises(InPlaceError, match="its gradient is ambiguous"):
        static.gradients(before + app.sum(w), w)


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
