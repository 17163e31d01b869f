"""A Program that was written down and read back is the same Program."""

from __future__ import annotations

import pytest

import app
from app import static
from app.errors import ProgramError
from app.graph.written import from_json, to_json


def built() -> static.Program:
    x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
    fixed = app.nn.ParamAttr(trainable=False)
    hidden = static.nn.fc(static.nn.fc(x, 4, weight_attr=fixed)[:, 1:3], 4)
    hidden = app.where(hidden > 0.5, hidden, float("inf")) * app.to_tensor([1.0]).item()
    app.optimizer.Momentum(learning_rate=0.1).minimize(app.nn.functional.cross_entropy(hidden, label))
    return static.default_main_program()


@pytest.mark.parametrize("which", ["main", "startup"])
def test_it_comes_back_as_it_was(which: str):
    program = built() if which == "main" else (built(), static.default_startup_program())[1]
    back = from_json(to_json(program))
    assert back == program
    assert str(back) == str(program)
    assert [p.trainable for p in back.all_parameters()] == [p.trainable for p in program.all_parameters()]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"random_seed": null, "blocks": [{"parent": -1}]}'])
def test_other_texts_are_refused(text: str):
    with pytest.raises(ProgramError, match="this is not the text of a Program"):
        from_json(text)


def test_an_operator_that_is_not_there_is_named():
    text = to_json(built()).replace('"matmul"', '"matmull"')
    with pytest.raises(ProgramError, match="there is no operator 'matmull'"):
        from_json(text)
