"""What the checks say of operators that are right, or of which one should know something."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import app
from app import custom_op
from app.checking.checks import CHECKS, examine
from app.checking.examples import inputs_for
from app.checking.finding import find, found
from app.checking.subject import Subject
from app.checking.verdict import NOTE, OK, Verdict
from app.errors import ConfigError, OperatorError

pytestmark = pytest.mark.slow

KNOWN: dict[str, Any] = {}


@custom_op(elementwise=True, like="silu")
def swish(x):
    return x / (1 + np.exp(-x))


@custom_op(elementwise=True)
def leaky(x, slope=0.1):
    return x if x > 0 else x * slope


@custom_op
def linear(x, w, b):
    return x @ w + b


@linear.backward
def _(x, w, dy):
    return dy @ w.T, x.T @ dy, dy.sum(0)


@custom_op
def logarithm(x):
    return np.log(x)


@logarithm.backward
def _(x, dy):
    return dy / x


class Tanh(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = app.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y)


@cache
def subject_of(operator: Any) -> Subject:
    """An operator with the inputs that are found for it, which takes a while."""
    return inputs_for(found(operator, "it"))


def told(operator: Any, *only: str, **given: Any) -> list[Verdict]:
    return list(examine(inputs_for(found(operator, "it"), **given) if given else subject_of(operator), only))


def words(operator: Any, *only: str, **given: Any) -> str:
    return "\n".join(f"{v.state} {v.words}" for v in told(operator, *only, **given))


EAGER = [name for name in CHECKS if name not in ("engines", "inlined")]


@pytest.mark.parametrize("operator", [linear, Tanh], ids=lambda o: str(o))
def test_what_is_right_is_not_complained_of(operator: Any):
    verdicts = told(operator, *EAGER)
    assert [v for v in verdicts if v.failed] == []
    advised = [v.check for v in verdicts if "row_by_row=True would declare it" in v.words]
    assert advised == (["rows"] if operator is linear else [])


def test_inputs_are_found_by_trying():
    subject = subject_of(linear)
    assert [str(i) for i in subject.inputs] == ["x float64[4, 6]", "w float64[6, 6]", "b float64[6]"]
    assert (subject_of(logarithm).low, subject.low) == (0.1, -2.0)


def test_inputs_are_taken_as_said():
    shapes = [((2, 3), "float64"), ((3, 5), "float64"), ((5,), "float64")]
    subject = inputs_for(found(linear, "linear"), shapes, within=(0.0, 1.0))
    assert [i.shape for i in subject.inputs] == [(2, 3), (3, 5), (5,)]
    assert all(a.min() >= 0 for a in subject.arrays())


def test_an_operator_that_runs_on_nothing_says_why():
    @custom_op(infer=lambda x: x)
    def refuses(x):
        raise ValueError("only on Sundays")

    with pytest.raises(
        OperatorError, match=r"(?s)no inputs were found.*only on Sundays.*--shape 4,8 --shape 8.*--range=-1,1"
    ):
        inputs_for(found(refuses, "refuses"))


def test_a_setting_without_a_default_is_needed():
    needs = custom_op(lambda x, *, by: x * by, name="needs", elementwise=True)
    with pytest.raises(ConfigError, match="needs needs its setting 'by': give --set by=VALUE"):
        inputs_for(found(needs, "needs"))
    assert words(needs, "gradient", settings={"by": 2.0}).startswith("ok 24 elements agree")


def test_kinks_are_told_with_what_backward_gives_there():
    assert "kinks at 0, where backward gives 0.1" in words(leaky, "gradient")
    assert "kinks" not in words(swish, "gradient")


def test_jumps_are_told():
    rounded = custom_op(lambda x: np.floor(x) * 1.0, name="rounded", elementwise=True)
    assert "jumps at -2, -1, 0, 1, 2" in words(rounded, "gradient")


def test_a_gradient_that_was_written_for_the_default_setting_is_found():
    @custom_op(elementwise=True)
    def fixed(x, slope=0.1):
        return x if x > 0 else x * slope

    fixed.backward(lambda x, dy: dy if x > 0 else dy * 0.1)
    assert words(fixed, "gradient").startswith("ok")
    assert words(fixed, "settings").startswith("FAILED with slope=0.4, that of x is wrong in")


def test_an_equivalent_may_have_settings_of_its_own():
    assert words(leaky, "like", like="leaky_relu(negative_slope=0.1)").startswith("ok the results equal those of")
    assert words(leaky, "like", like="leaky_relu(negative_slope=0.2)").startswith("FAILED on drawn numbers the result")


@pytest.mark.parametrize(
    ("function", "check", "expected"),
    [
        (lambda x: x if x > 0 else 0.0, "nan and inf", "note NaN in x becomes a number"),
        (lambda x: np.exp(x) / (1 + np.exp(x)), "large numbers", "note the result is NaN at 1000: the formula"),
    ],
)
def test_what_one_should_know_is_a_note(function: Any, check: str, expected: str):
    assert words(custom_op(function, name="it", elementwise=True), check).startswith(expected)


def test_that_there_is_no_second_derivative_is_a_note():
    (verdict,) = examine(inputs_for(find("custom.relu")[0]), ["second"])
    assert (verdict.state, verdict.words.partition(":")[0]) == (NOTE, "there is none")


@custom_op
@njit
def in_a_loop(x):
    y = np.empty_like(x)
    total = 0.0
    for i in range(x.size):
        total += x.flat[i]
        y.flat[i] = total
    return y


@in_a_loop.backward
@njit
def _(dy):
    return np.cumsum(dy[::-1])[::-1]


@custom_op(elementwise=True)
def keeps_notes(x):
    KNOWN["last"] = 1
    return 2 * x


keeps_notes.backward(lambda x, dy: 2 * dy)


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.strip() == text)


@pytest.mark.parametrize(
    ("operator", "state", "expected"),
    [
        (swish, OK, r"swish: inlined: in a loop"),
        (in_a_loop, NOTE, "not inlined because of test_check_verdicts.py:{}: `total = 0.0`"),
        (keeps_notes, NOTE, '(test_check_verdicts.py:{}: `KNOWN["last"] = 1`)'),
        (logarithm, NOTE, "it would compile as it is: put @njit above it"),
        (Tanh, NOTE, "forward works on Tensors"),
    ],
    ids=["inlined", "a loop", "a dictionary", "plain", "layer"],
)
def test_the_line_that_keeps_it_from_being_inlined_is_named(operator: Any, state: str, expected: str):
    first = told(operator, "inlined")[0]
    quoted = expected.partition("`")[2].rstrip("`)")
    assert expected.format(line_of(quoted) if quoted else "") in first.words
    assert first.state == state


def test_an_input_without_a_gradient_may_be_a_setting():
    class Scale(app.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.k, None

    assert words(Scale, "gradient").endswith("; if k is a setting and not an input: --set k=VALUE")
    assert words(Scale, "gradient", settings={"k": 3.0}).startswith("ok")


def test_whole_numbers_are_tried_where_floats_do_not_do():
    @custom_op
    def pick(x, label):
        return x[np.arange(len(label)), label]

    @pick.backward
    def _(x, label, dy):
        gradient = np.zeros_like(x)
        gradient[np.arange(len(label)), label] = dy
        return gradient, None

    subject = inputs_for(found(pick, "pick"))
    assert [str(i) for i in subject.inputs] == ["x float64[4, 6]", "label int64[4]"]
    assert [v for v in examine(subject, EAGER) if v.failed] == []
