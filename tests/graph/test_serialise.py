"""A Program that was written down as JSON and read back is the same Program."""

from __future__ import annotations

import json
from typing import Any

import pytest

import app
from app import static
from app.errors import ProgramError
from app.graph.serialise import program_from_data, program_to_data


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


@pytest.mark.parametrize("which", ["main", "startup"])
def test_it_comes_back_as_it_was(which: str):
    program = built() if which == "main" else (built(), static.default_startup_program())[1]
    back = program_from_data(through_json(program))
    assert back.equals(program)
    assert str(back) == str(program)
    assert [p.trainable for p in back.all_parameters()] == [p.trainable for p in program.all_parameters()]
    assert len(back.blocks) == len(program.clone().blocks)


def test_random_numbers_go_on_where_they_were():
    program = static.Program()
    program.random_seed = 7
    assert [program.next_seed(), program.next_seed()] == [(7, 1), (7, 2)]
    assert program_from_data(through_json(program)).next_seed() == (7, 3)


def changed(data: Any, path: list[Any], value: Any) -> Any:
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["blocks"], 3),
        (["blocks", 0, "parent"], 0),
        (["blocks", 1, "parent"], 1),
        (["blocks", 0, "variables"], [{"name": "x"}]),
        (["blocks", 0, "variables", 0, "colour"], "red"),
        (["blocks", 0, "operators", 0, "inputs"], ["nothing", "of_this"]),
        (["blocks", 0, "operators", 0, "type"], None),
        (["blocks", 0, "operators", 0, "custom"], 0),
        (["blocks", 0, "operators", 0, "role"], "sideways"),
        (["blocks", 0, "operators", 0, "attributes", "transpose_x"], {"body": {"block": 9}}),
        (["blocks", 0, "operators", 0, "attributes", "transpose_x"], {"float": "1.0"}),
        (["blocks", 0, "operators", 0, "attributes", "transpose_x"], {"unheard": 1}),
    ],
)
def test_other_data_is_refused(path: list[Any], value: Any):
    with pytest.raises(ProgramError, match="this is not a Program"):
        program_from_data(changed(through_json(built()), path, value))


@pytest.mark.parametrize("data", [None, [], {}, {"random_seed": None, "random_count": 0, "blocks": [{"parent": -1}]}])
def test_what_is_no_program_at_all_is_refused(data: Any):
    with pytest.raises(ProgramError, match="this is not a Program"):
        program_from_data(data)


def test_an_operator_or_an_attribute_that_is_not_there_is_named():
    operator = ["blocks", 0, "operators", 0]
    with pytest.raises(ProgramError, match="there is no operator 'matmull'; was it written by another release"):
        program_from_data(changed(through_json(built()), [*operator, "type"], "matmull"))
    with pytest.raises(ProgramError, match="operator matmul has no attribute 'scale'; was it written by another"):
        program_from_data(changed(through_json(built()), [*operator, "attributes", "scale"], 2))
    with pytest.raises(ProgramError, match="operator matmul has 1 outputs, found 0; was it written by another release"):
        program_from_data(changed(through_json(built()), [*operator, "outputs"], []))


def test_a_function_of_a_program_has_to_be_told_how_to_be_written():
    static.py_func(lambda a: a, static.data("x", [2]), static.InputSpec([2]))
    with pytest.raises(ProgramError, match=r"py_func.<lambda> .* is a custom operator, which cannot be saved here"):
        program_to_data(static.default_main_program())
