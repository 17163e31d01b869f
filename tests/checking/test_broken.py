"""Each broken operator is found: by which check, with which message."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from as_python import uncompiled
from broken_operators import BROKEN, Broken

from app.autograd import Function
from app.checking.checks import CHECKS, examine
from app.checking.examples import inputs_for
from app.checking.operators import UserOperator, user_operator
from app.checking.subject import Subject
from app.checking.verdict import FAILED, Verdict
from app.custom import py_func
from app.errors import ReadOnlyError
from app.ops.spec import Spec, spec_of

__all__ = ["uncompiled"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncompiled")]

NAMES = "xgw"


def subject_of(one: Broken) -> Subject:
    shapes = [(shape, "float64") for shape in one.shapes]
    if one.layer:
        return inputs_for(user_operator(one.make(Function), one.name), shapes)
    forward, backward = one.make()
    names = [n if len(s) > 1 else "b" for n, s in zip(NAMES, one.shapes, strict=False)]

    def call(*values: Any) -> Any:
        outs = [Spec(*spec) for spec in one.told(*map(spec_of, values))]
        return py_func(forward, list(values), outs if one.outputs > 1 else outs[0], backward, **one.options)

    parameters = tuple(inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names)
    return inputs_for(UserOperator(one.name, "py_func", call, parameters), shapes)


@pytest.mark.filterwarnings("ignore:operator py_func:RuntimeWarning")
@pytest.mark.parametrize("one", BROKEN, ids=[one.name for one in BROKEN])
def test_a_broken_operator_is_found(one: Broken):
    try:
        verdicts = list(examine(subject_of(one), [one.check]))
    except ReadOnlyError as error:  # on whatever inputs are tried
        verdicts = [Verdict(FAILED, str(error), "untouched")]
    messages = [v.words for v in verdicts if v.failed]
    assert messages, [v.words for v in verdicts]
    assert re.search(one.message, messages[0])
    assert {v.check for v in verdicts} == {one.check} <= set(CHECKS)


def test_the_documentation_has_a_row_for_each_check():
    page = Path(__file__).parents[2] / "docs" / "checking.md"
    rows = re.findall(r"^\| ([a-z ]+) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(CHECKS) <= set(rows)
