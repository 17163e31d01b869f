"""Attributes that are written as JSON and read again are exactly the same, and data of no Program are refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import app
from app import static
from app.errors import ProgramError
from app.graph.serialise import program_from_data, program_to_data, value_from_data, value_to_data
from app.ops.dtype import NAMES
from app.ops.spec import Spec

# --- Programs ---


def built() -> static.Program:
    x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
    fixed = app.nn.ParamAttr(trainable=False)
    hidden = static.nn.fc(static.nn.fc(x, 4, weight_attr=fixed)[:, 1:3], 4)
    hidden = app.where(hidden > 0.5, hidden, float("inf")) * app.to_tensor([1.0]).item()
    hidden = static.nn.cond(app.sum(hidden) > 1.0, lambda: hidden * 2.0, lambda: hidden + float("-inf"))
    app.optimizer.Momentum(learning_rate=0.1).minimize(app.nn.functional.cross_entropy(hidden, label))
    return static.default_main_program()


def through_json(program: static.Program) -> Any:
    return json.loads(json.dumps(program_to_data(program), allow_nan=False))


def test_a_program_continues_its_random_numbers_after_reading():
    program = static.Program()
    program.random_seed = 7
    assert [program.next_seed(), program.next_seed()] == [(7, 1), (7, 2)]
    assert program_from_data(through_json(program)).next_seed() == (7, 3)


BLOCK = ("blocks", 0)
OPERATOR = (*BLOCK, "operators", 0)
ATTRIBUTES = (*OPERATOR, "attributes")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        *(
            ((), data, "this is not a Program")
            for data in (None, [], {}, {"random_seed": None, "random_count": 0, "blocks": [{"parent": -1}]})
        ),
        (("blocks",), 3, "this is not a Program"),
        ((*BLOCK, "parent"), 0, "this is not a Program"),
        (("blocks", 1, "parent"), 1, "this is not a Program"),
        ((*BLOCK, "variables"), [{"name": "x"}], "this is not a Program"),
        ((*BLOCK, "variables", 0, "colour"), "red", "this is not a Program"),
        ((*OPERATOR, "inputs"), ["nothing", "of_this"], "this is not a Program"),
        ((*OPERATOR, "type"), None, "this is not a Program"),
        ((*OPERATOR, "custom"), 0, "this is not a Program"),
        ((*OPERATOR, "role"), "sideways", "this is not a Program"),
        *(
            ((*ATTRIBUTES, "transpose_x"), wrong, "this is not a Program")
            for wrong in ({"body": {"block": 9}}, {"float": "1.0"}, {"unheard": 1})
        ),
        ((*OPERATOR, "type"), "matmull", "there is no operator 'matmull'; was it written by another release"),
        ((*ATTRIBUTES, "scale"), 2, "operator matmul has no attribute 'scale'; was it written by another"),
        ((*OPERATOR, "outputs"), [], "operator matmul has 1 outputs, found 0; was it written by another release"),
    ],
)
def test_data_of_no_program_are_an_error(path: tuple[Any, ...], value: Any, message: str):
    data = through_json(built())
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    if path:
        inner[path[-1]] = value
    with pytest.raises(ProgramError, match=message):
        program_from_data(data if path else value)


def test_a_program_with_a_python_function_is_not_written():
    static.py_func(lambda a: a, static.data("x", [2]), static.InputSpec([2]))
    with pytest.raises(ProgramError, match=r"py_func.<lambda> .* is a custom operator, which cannot be saved here"):
        program_to_data(static.default_main_program())


# --- Attributes ---

texts = st.text('aZ0 "\\/\n\t\0\x7fé\u2028☃😀')  # of every character, Hypothesis would make a table first
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(leaves, lambda inner: st.lists(inner).map(tuple), max_leaves=20)


def value_through_json(value: Any) -> Any:
    return value_from_data(json.loads(json.dumps(value_to_data(value), allow_nan=False)))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float):
        return (type(b) is float and (math.copysign(1, a), repr(a)) == (math.copysign(1, b), repr(b))) or a != a != b
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@settings(max_examples=30, deadline=None)
@given(values)
@example((Spec((-1, 3), "float32"), -0.0, 1e-320, 10**40))
def test_a_value_that_is_written_and_read_is_the_same(value: Any):
    assert same(value_through_json(value), value)


@pytest.mark.parametrize("name", NAMES)
def test_an_array_that_is_written_and_read_is_the_same(name: str):
    array = np.arange(6).reshape(2, 3).astype(name)
    if name.startswith("float"):
        array.flat[:4] = [np.inf, -np.inf, np.nan, np.finfo(name).tiny]
    back = value_through_json(array)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("value", [object(), np.array(["a"]), [1], {1: 2}, (1, len)], ids=lambda v: type(v).__name__)
def test_a_value_that_cannot_be_written_is_an_error(value: Any):
    with pytest.raises(ProgramError, match=r"object|array|list|dict|function"):
        value_to_data(value)
