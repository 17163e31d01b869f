"""What the checks say of correct operators, of what a user should know, and of mistakes, with their line."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from as_python import as_python, only_engines_compile, uncompiled
from checking.verdicts import elementwise, with_backward, words
from custom_zoo import ONE, TWO
from modules_of_text import module_of_text
from numba import njit

import app
from app import custom_op
from app.checking.checks import CHECKS, examine
from app.checking.examples import inputs_for
from app.checking.operators import find, user_operator
from app.checking.subject import Result
from app.engine.compiled.read_only import why_refused
from app.errors import ConfigError, OperatorError

__all__ = ["uncompiled"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uncompiled")]

HERE = Path(__file__)
EAGER = [name for name, check in CHECKS.items() if "opsmith" in check.origins and name not in ("engines", "inlined")]
KNOWN: dict[str, Any] = {}


def place(line: str) -> str:
    """`test_check_verdicts.py:7`, of the line of this file that is equal to a text."""
    lines = HERE.read_text(encoding="utf-8").splitlines()
    return f"{HERE.name}:{next(i for i, one in enumerate(lines, 1) if one.strip() == line)}"


def quoted(line: str) -> str:
    """A line of this file as messages quote it."""
    return f"({place(line)}: `{line}`)"


def is_like(told: str, expected: str) -> bool:
    """Whether a text begins as expected, where … stands for any words."""
    return re.match(re.escape(expected).replace("…", ".*"), told, re.DOTALL) is not None


# --- Inputs ---


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


def pick(x, label):
    return x[np.arange(len(label)), label]


def pick_grad(x, label, dy):
    gradient = np.zeros_like(x)
    gradient[np.arange(len(label)), label] = dy
    return gradient, None


SCORES = with_backward(lambda q, k: q @ k.T, lambda q, k, dy: (dy @ k, dy.T @ q))
LINEAR = with_backward(lambda x, w, b: x @ w + b, lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.sum(0)))


@pytest.mark.parametrize(
    ("operator", "inputs", "row_by_row"),
    [
        (LINEAR, "x float64[4, 6], w float64[6, 6], b float64[6]", True),
        (with_backward(pick, pick_grad), "x float64[4, 6], label int64[4]", True),
        (Tanh, "x float64[4, 6]", False),
        (SCORES, "q float64[4, 6], k float64[4, 6]", False),
    ],
)
def test_a_correct_operator_passes_with_inputs_that_are_found(operator: Any, inputs: str, row_by_row: bool):
    subject = inputs_for(user_operator(operator, "it"))
    assert ", ".join(map(str, subject.inputs)) == inputs
    verdicts = list(examine(subject, EAGER))
    assert [v for v in verdicts if v.failed] == []
    advised = [v.check for v in verdicts if "row_by_row=True would declare it" in v.words]
    assert advised == ["rows"] * row_by_row


def test_a_backward_that_refuses_other_shapes_is_right_and_one_that_leaves_its_array_is_not():
    def of_six_columns(x, dy):
        dx = np.empty_like(x)
        for i in range(x.shape[0]):
            for j in range(6):  # forward takes other widths
                dx[i, j] = 2 * dy[i, j]
        return dx

    def of_two_axes(x, dy):
        rows, columns = x.shape
        return 2 * dy.reshape(rows, columns)

    for backward, message in (
        (njit(of_six_columns), "with x float64[2, 1, 3], the gradient of … index 1 is out of b"),
        (of_two_axes, ""),
    ):
        operator = with_backward(lambda x: x * 2, backward)
        with as_python(False):  # a process of its own then runs it as Python
            failed = [v.words for v in examine(inputs_for(user_operator(operator, "it")), ["axes"]) if v.failed]
        assert [is_like(text, message) for text in failed] == [True] * bool(message)


def test_a_gradient_that_is_wrong_for_square_inputs_alone_is_found():
    def transposed(x, dy):
        return 2 * (dy.T if dy.T.shape == x.shape else dy)

    operator = with_backward(lambda x: x * 2, transposed)
    failed = [v.words for v in examine(inputs_for(user_operator(operator, "it")), EAGER) if v.failed]
    assert [is_like(text, "with x float64[5, 5], that of x is wrong in 20 of 25 elements") for text in failed] == [True]


def test_given_shapes_and_a_given_range_are_taken():
    shapes = [((2, 3), "float64"), ((3, 5), "float64"), ((5,), "float64")]
    subject = inputs_for(user_operator(LINEAR, "linear"), shapes, within=(0.0, 1.0))
    assert [i.shape for i in subject.inputs] == [(2, 3), (3, 5), (5,)]
    assert all(a.min() >= 0 for a in subject.arrays())


def test_a_setting_without_a_default_is_needed():
    needs = custom_op(lambda x, *, by: x * by, name="needs", elementwise=True)
    with pytest.raises(ConfigError, match="needs needs its setting 'by': give --set by=VALUE"):
        inputs_for(user_operator(needs, "needs"))
    assert words(needs, "gradient", settings={"by": 2.0}).startswith("ok 24 elements agree")


def test_an_input_without_a_gradient_may_be_a_setting():
    class Scale(app.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.k, None

    assert words(Scale, "gradient").endswith(
        "; does backward return it? If k is a setting and not an input: --set k=VALUE"
    )
    assert words(Scale, "gradient", settings={"k": 3.0}).startswith("ok")


def test_one_shape_is_tried_if_there_is_no_gradient():
    shapes = []

    @custom_op
    def without_gradient(x, y):
        shapes.append((x.shape, y.shape))
        return x + y

    assert inputs_for(user_operator(without_gradient, "it")).low == -2
    assert set(shapes) == {((4, 6), (4, 6))}


def scale_and_shift(x, gain, bias):
    normal = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    return normal * gain + bias


def scale_and_shift_grad(x, gain, bias, dy):
    deviation = x.std(1, keepdims=True)
    normal = (x - x.mean(1, keepdims=True)) / deviation
    d = dy * gain
    dx = (d - d.mean(1, keepdims=True) - normal * (d * normal).mean(1, keepdims=True)) / deviation
    return dx, (dy * normal).sum(0), dy.sum(0)


def refuses_negative(x, dy):
    if x.min() < 0:
        raise ValueError("negative")
    return 2 * x * dy


CHECKED_ON = "; checked on x float64[4, 6], b float64[6]"


@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (
            lambda x, b: x + b,
            lambda x, b, dy: (dy, dy.sum()),
            "expected that of b, [4, 6] (<lambda>, test_check_verdicts.py:",
        ),
        (lambda x: x.T, lambda x, dy: dy, "x has shape [6, 4], expected that of x, [4, 6]"),
        (lambda x: x * x, lambda x, dy: 2 * dy @ x, "raised ValueError: matmul: "),
        (lambda x: x * x, refuses_negative, "raised ValueError: negative"),
        (lambda x: x * x, lambda x, dy: dy[0] * 2 * x, "that of x is wrong in"),
    ],
)
def test_a_gradient_that_is_wrong_where_forward_runs_is_a_failure(forward: Any, backward: Any, message: str):
    told = words(with_backward(forward, backward), "gradient")
    assert told.startswith("FAILED")
    assert message in told


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")  # of equal numbers
def test_gradients_of_rows_beside_a_batch_are_right_and_a_note_says_what_was_passed_over():
    add = with_backward(lambda x, b: x + b, lambda x, b, dy: (dy, dy.sum(0)))
    normalise = with_backward(scale_and_shift, scale_and_shift_grad)
    for operator in (add, normalise):
        assert words(operator, "gradient").startswith("ok")
    note, ok = words(add, "shapes").splitlines()
    assert note.startswith("note with x float64[4, 6], b float64[4, 6], ")
    assert "the gradient of b has shape [6], expected that of b, [4, 6]" in note
    assert note.endswith(CHECKED_ON)
    assert ok.startswith("ok")
    assert words(add, "shapes", shapes=[((4, 6), "float64"), ((6,), "float64")]).startswith("ok")


def eighth(x):
    return x[: len(x) // 8] * 2


def eighth_grad(x, dy):
    return np.concatenate([dy * 2, np.zeros((len(x) - len(dy), *x.shape[1:]), x.dtype)])


def test_an_operator_whose_result_is_empty_is_checked_on_larger_inputs():
    right, wrong = with_backward(eighth, eighth_grad), with_backward(eighth, lambda x, dy: 2 * eighth_grad(x, dy))
    gradient, shapes = words(right, "gradient", "shapes").splitlines()
    assert gradient.startswith("ok 102 elements agree with finite differences")
    assert shapes == "ok x float64[17, 6] give [?, 6], as inferred, for batches of several sizes"
    assert words(wrong, "gradient").startswith("FAILED that of x is wrong in 12 of 102 elements")


def test_few_shapes_are_tried_before_the_user_is_asked_for_them():
    calls = []

    @custom_op(infer=lambda x, *others: x)
    def needs_seven_columns(x, y, z):
        calls.append(x)
        return x.reshape(-1, 7) + y + z

    with pytest.raises(OperatorError, match=r"no inputs were found .* Say their shapes, --shape 4,8"):
        inputs_for(user_operator(needs_seven_columns, "it"))
    assert len(calls) < 200


def test_a_function_of_single_numbers_that_takes_an_array_is_told_so():
    @custom_op(elementwise=True)
    def total(x):
        return sum(x[i] for i in range(len(x)))

    with pytest.raises(OperatorError, match=r"has no len.*elementwise=True gives the function single numbers"):
        inputs_for(user_operator(total, "it"))


def test_what_a_pylayer_saves_is_not_a_question_of_shapes():
    class Tanh(app.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.numpy())
            return app.tanh(x)

    with pytest.raises(OperatorError, match=r"save_for_backward takes Tensors, found ndarray; [^-]*$"):
        inputs_for(user_operator(Tanh, "it"))


# --- Verdicts of one check ---


def leaky(x, slope=0.1):
    return x if x > 0 else x * slope


def small(x):
    if x.max() > 1:
        raise ValueError("too large")
    return x * 2


def positive(x):
    if x < 0:
        raise ValueError("negative")
    return x * x


def sign(x):
    return np.where(x > 0, 1.0, -1.0).astype(x.dtype)


class StraightThrough(app.autograd.PyLayer):
    surrogate = True

    @staticmethod
    def forward(ctx, x):
        return app.sign(x)

    @staticmethod
    def backward(ctx, dy):
        return dy * 1.0


def with_py_func(x):
    out = app.static.InputSpec(x.shape, x.dtype)
    return app.static.py_func(sign, x, out, lambda x, y, dy: dy * 1.0, surrogate=True)


@custom_op
@njit
def in_a_loop(x):
    y = np.empty_like(x)
    total = 0.0
    for i in range(x.size):
        total += x.flat[i]
        y.flat[i] = total
    return y


in_a_loop.backward(lambda dy: np.cumsum(dy[::-1])[::-1])


def keeps_notes(x):
    KNOWN["last"] = 1
    return 2 * x


def plain_helper(x):
    return x * 2


def calls_helper(x):
    return plain_helper(x)


def calls_a_library(x):
    return copied(x)


copied = copy.copy  # a Python function of a library


def with_a_file(x):
    with open("/dev/null") as file:
        file.read()
    return x


def caught(x):
    try:
        y = x
    except KeyError as error:
        y = error
    return y


def in_numba(function: Any) -> Any:
    """An operator that Numba should compile, with a gradient that it compiles."""
    return with_backward(function, lambda x, dy: dy, elementwise=True)


def by_mode(in_program: Any) -> Any:
    """A function that doubles Tensors, and does something else in a Program."""
    return lambda x: x * 2.0 if isinstance(x, app.Tensor) else in_program(x)


SURROGATE = "ok declared a surrogate: it differs from finite differences in …elements, as meant"
FIXED = with_backward(leaky, lambda x, dy: dy if x > 0 else dy * 0.1, elementwise=True)
CLIPPED = with_backward(lambda x: x * 1.0, lambda x, dy: np.clip(dy, -9, 9), surrogate=True)
EXACT = with_backward(lambda x: x * x, lambda x, dy: 2 * x * dy, surrogate=True)
MEAN_OF_SIX = with_backward(
    lambda x: x.mean(axis=1, keepdims=True),
    lambda x, dy: np.broadcast_to(dy / 6, x.shape),
)
FOUR_ROWS = with_backward(lambda x: x / len(x), lambda x, dy: dy / 4)
NARROW = with_backward(lambda x: x * 0.5, lambda x, dy: dy * 0.5)


def row_by_row(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = np.log(x[i])
    return y


WIDE = with_backward(lambda x: x * np.float64(0.5), lambda x, dy: dy * np.asarray(0.5) * np.ones(1))
LOGARITHM = with_backward(row_by_row, lambda x, dy: dy / x)
SIGMOID = elementwise(lambda x: np.exp(x) / (1 + np.exp(x)))
TOO_LARGE = place('raise ValueError("too large")')


@pytest.mark.parametrize(
    ("check", "operator", "expected"),
    [
        ("range", elementwise(lambda x: np.log(x)), "note inputs from [-2, 2] gave NaN at x = -…; checked on [0.1, 2]"),
        ("range", custom_op(small, infer=lambda x: x), f"note …gave an error: …({TOO_LARGE}); checked on [-0.9, 0.9]"),
        ("gradient", elementwise(leaky), "ok …kinks at 0, where backward gives 0.1"),
        ("gradient", elementwise(lambda x: np.floor(x) * 1.0), "ok …jumps at -2, -1, 0, 1, 2"),
        ("gradient", FIXED, "ok "),
        ("settings", FIXED, "FAILED with slope=0.4, that of x is wrong in"),
        ("gradient", MEAN_OF_SIX, "FAILED with x float64[2, 17], that of x is wrong"),
        ("gradient", FOUR_ROWS, "FAILED with x float64[1, 6], that of x is wrong"),
        ("gradient", with_backward(lambda x: x > 0, lambda x, dy: dy), "FAILED it has no gradient, …results are bool"),
        ("gradient", with_backward(sign, lambda x, dy: dy * 1.0), "FAILED that of x is wrong"),
        ("gradient", with_backward(sign, lambda x, dy: dy * (np.abs(x) < 1), surrogate=True), SURROGATE),
        ("gradient", StraightThrough, SURROGATE),
        ("gradient", with_py_func, SURROGATE),
        ("gradient", EXACT, "note it is declared a surrogate, but agrees"),
        ("proportional", CLIPPED, "note with -1000 times the gradient of the outputs"),
        ("second", find("custom.relu")[0].call, "note there is none: "),
        ("types", WIDE, "note y is returned as float64 for float32, the gradient of x is …, and is cast"),
        ("types", NARROW, "ok float32 stays float32, float64 stays float64, and they agree"),
        ("nan and inf", elementwise(positive), "ok"),
        ("nan and inf", elementwise(lambda x: 1.0 if x > 0 else -1.0), "ok NaN in x gives a number, as intended"),
        ("nan and inf", elementwise(lambda x: x if x > 0 else 0.0), "note NaN in x …write 0 if x <= 0 else x in place"),
        ("nan and inf", elementwise(lambda x, w: x if x > 0 else w), "note NaN in x becomes a number"),  # but not in w
        ("large numbers", SIGMOID, "note the result is NaN at 1000: the formula"),
        ("engines", by_mode(lambda x: x * 3.0), "FAILED the reference engine gives another …than Tensors do"),
        ("engines", by_mode(custom_op(small, infer=lambda x: x)), "FAILED the reference engine fails: …too large"),
        ("inlined", elementwise(lambda x: x / (1 + abs(x))), "ok it: inlined: in a loop"),
        ("inlined", in_a_loop, f"note …not inlined because of {place('total = 0.0')}: `total = 0.0`"),
        ("inlined", LOGARITHM, "note …it would compile as it is: put @njit above it"),
        ("inlined", Tanh, "ok it consists of the framework's operators, which are compiled"),
        ("inlined", in_numba(keeps_notes), "note …" + quoted('KNOWN["last"] = 1')),
        ("inlined", in_numba(with_a_file), f"…cannot compile with_a_file: The 'with …{quoted('def with_a_file(x):')}"),
        ("inlined", in_numba(caught), f"…into variable (error) {quoted('except KeyError as error:')}"),
        ("inlined", in_numba(calls_helper), f"…; put @njit above plain_helper ({HERE.name}:"),
        (
            "inlined",
            custom_op(lambda x: x + np.random.normal(size=x.shape)),
            "…found for signature: >>> normal(size=UniTuple(int64 x 2))",
        ),
        (
            "inlined",
            custom_op(lambda x: x * eval("2")),
            f"…its function is plain Python, {HERE.name}…; Numba cannot compile it: ",
        ),
    ],
)
def test_the_verdict_of_one_check(check: str, operator: Any, expected: str):
    with only_engines_compile():
        assert is_like(words(operator, check), expected)


ON_THE_SHELF = dict.fromkeys(
    [
        *("py_func numba", "py_func numba rows", "py_func numba forward", "py_func half numba"),
        *("custom_op numba", "elementwise", "elementwise set", "py_func plain", "PyLayer"),
        *("py_func two outputs", "custom_op two outputs"),
    ],
    pytest.mark.soak,
)
"""Kinds of which an operator is on the shelf, whose tests run all checks, and those with only one Numba function; and
two outputs of functions on arrays, of which one with one gradient and an elementwise one are left."""


@pytest.mark.filterwarnings("ignore")  # of functions at zeros, as everywhere
@pytest.mark.parametrize("name", [pytest.param(n, marks=ON_THE_SHELF.get(n, ())) for n in (*ONE, *TWO)])
def test_no_check_fails_for_a_correct_operator_of_any_kind(name: str):
    findings = app.check({**ONE, **TWO}[name], only=EAGER)  # the tests of the engines have them, too
    assert findings.ok, findings


def test_only_a_relu_gets_the_advice_for_a_relu():
    for function in (lambda x: x * x if x > 0 else 0.0, lambda x, w: x if x > 0 else w):
        told = words(elementwise(function), "nan and inf")
        assert told == "note NaN in x becomes a number, which hides a training that went wrong"


def test_njit_is_advised_for_the_users_own_functions_alone():
    told = words(in_numba(calls_a_library), "inlined")
    assert "Untyped global name 'copied'" in told
    assert "put @njit above" not in told


def test_a_range_that_is_not_narrowed_and_missing_kinks_are_not_mentioned():
    operator = elementwise(squared)
    assert words(operator, "range") == "note inputs are drawn from the usual range"
    assert "kinks" not in words(operator, "gradient")


@pytest.mark.parametrize(("slope", "expected"), [(0.1, "ok the results equal"), (0.2, "FAILED on drawn numbers the")])
def test_an_equivalent_may_have_settings(slope: float, expected: str):
    assert words(elementwise(leaky), "like", like=f"leaky_relu(negative_slope={slope})").startswith(expected)


def bounded(low: float, high: float, backward: Any) -> Any:
    return with_backward(lambda x: min(max(x * 1.0, low), high), backward, elementwise=True)


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        (bounded(0.0, 6.0, lambda x, dy: dy if x > 0 else 0.0), 3),
        (bounded(-3.0, 3.0, lambda x, dy: dy), 8),
        (bounded(-20.0, 60.0, lambda x, dy: dy if x < 60 else 0.0), 3),
        (with_backward(lambda x: np.clip(x, 0, 6), lambda x, dy: dy * (x > 0)), 3),
    ],
)
def test_a_gradient_is_also_compared_far_outside_of_the_range(operator: Any, wrong: int):
    told = words(operator, "gradient")
    assert told.startswith(
        f"FAILED with a third of the inputs outside of [-2, 2], that of x is wrong in {wrong} of 24 elements; worst at "
    )
    assert words(operator, "gradient", within=(-2.0, 2.0)).startswith("ok")  # a range that the user gave


def table(x):
    return TABLE[int(x + 2)] * x


TABLE = np.arange(5.0)


@pytest.mark.parametrize(
    "operator",
    [
        elementwise(lambda x: min(max(x, 0.0), 6.0)),
        elementwise(lambda x: x * x * x * x * x * x),
        elementwise(lambda x: np.exp(np.exp(x))),  # infinite from 6.6 on
        elementwise(lambda x: np.exp(x) / (1 + np.exp(x))),
        elementwise(lambda x: np.log(x / (1 - x))),  # not a number outside of (0, 1)
        elementwise(lambda x: np.sqrt(1 + x * x) - abs(x)),
        elementwise(lambda x: np.sin(x * x * x)),  # oscillates within a step
        elementwise(lambda x: np.floor(x) * x),
        elementwise(lambda x, y: x % y),
        with_backward(lambda x: (x * x).sum(), lambda x, dy: 2 * x * dy),  # rounding errors of a large sum
        with_backward(lambda x: x @ x.T @ x, lambda x, dy: dy @ x.T @ x + x @ dy.T @ x + x @ x.T @ dy),
        with_backward(small, lambda x, dy: dy * 2),  # refuses large numbers
        with_backward(table, lambda x, dy: TABLE[int(x + 2)] * dy, elementwise=True),  # as far as it reaches
    ],
)
def test_no_gradient_fails_where_an_operator_overflows_oscillates_or_refuses(operator: Any):
    told = words(operator, "gradient", "large numbers")
    assert told.startswith("ok")
    assert "FAILED" not in told


@pytest.mark.parametrize(
    ("slope_at_0", "slope_at_20", "expected"),
    [
        (0.0, 0.0, "ok the results equal those of relu6"),
        (1.0, 0.0, "note on special numbers the gradient of x is another in 3 of 24 elements"),
        (0.0, 1.0, "FAILED on special numbers the gradient of x is wrong in 1 of 24 elements; …, x = 20: it gives"),
        (1.0, 1.0, "FAILED on special numbers the gradient of x is wrong in 1 of 24 elements; …, x = 20: it gives"),
    ],
)
def test_another_gradient_than_that_of_the_equivalent_is_wrong_except_at_a_kink(
    slope_at_0: float, slope_at_20: float, expected: str
):
    def slope(x: np.ndarray, dy: np.ndarray) -> np.ndarray:
        return dy * np.where(x == 0, slope_at_0, np.where(x == 20, slope_at_20, ~((x <= 0) | (x >= 6))))

    told = words(with_backward(lambda x: np.clip(x, 0, 6), slope), "like", like="relu6")
    assert is_like(told, expected)


def test_a_surrogate_has_another_gradient_than_the_equivalent():
    operator = with_backward(lambda x: np.sign(x), lambda x, dy: dy * 1.0, surrogate=True)
    assert words(operator, "like", like="sign").startswith("ok")


def test_an_operator_that_draws_numbers_fails_one_check():
    random = np.random.default_rng(0)
    dropout = user_operator(with_backward(lambda x: x * (random.random(x.shape) < 0.5), lambda x, dy: dy), "dropout")
    for only in (["repeatable", "rows", "layout", "types"], ["rows"]):
        (verdict,) = examine(inputs_for(dropout), only)
        assert (verdict.check, verdict.failed) == ("repeatable", True)
        assert "the same inputs give another result the second time" in verdict.words


# --- Broadcasting ---


def product(grad_of_g: Callable[..., Any]) -> Any:
    """x * g, with a correct gradient of x and this one of g."""

    @custom_op(infer=lambda x, g: np.broadcast_shapes(tuple(x.shape), tuple(g.shape)))
    def scaled(x, g):
        return x * g

    scaled.backward(lambda x, g, dy: (summed(dy * g, x), grad_of_g(dy * x, g)))
    return scaled


def summed(gradient: np.ndarray, one: np.ndarray) -> np.ndarray:
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - one.ndim)))
    return gradient.sum(axis=tuple(a for a, s in enumerate(one.shape) if s == 1), keepdims=True)


def refuses(x, g):
    if x.shape != g.shape:
        raise ValueError("two shapes")
    return x * g


@njit
def loops_over_the_first(x, g):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * g[i, j]
    return y


LOOPS = with_backward(loops_over_the_first, lambda x, g, dy: (dy * g, dy * x))
RIGHT = "ok inputs are broadcast, and gradients summed back to their shapes"
NOT_SUMMED = product(lambda gradient, one: np.resize(gradient, one.shape))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (app.multiply, RIGHT),
        (app.divide, RIGHT),
        (product(summed), RIGHT),
        (NOT_SUMMED, "FAILED [4, 6] with [6]: the gradient of g is not summed over the broadcast axes"),
        (product(lambda gradient, one: gradient), "FAILED [4, 6] with [6]: the gradient fails: "),
        (custom_op(lambda x, g: x * 2), "FAILED [4, 1] with [1, 6]: it gives shape [4, 1], expected [4, 6]"),
        (custom_op(lambda x, g: x * g * g.size), "FAILED [4, 6] with [6]: it gives other numbers than for expanded"),
        (LOOPS, "FAILED [4, 1] with [1, 6]: forward indexes outside of its arrays, given x "),
        (custom_op(refuses), f"note inputs are not broadcast: [4, 6] with [6]: operator refuses ({HERE.name}:"),
        (
            custom_op(lambda x, g: np.cumsum(x, axis=1) * g),
            "note it does not apply to this operator",
        ),  # not elementwise
        (app.tanh, "note it does not apply to this operator"),
    ],
)
def test_the_verdict_of_the_check_of_broadcasting(operator: Any, expected: str):
    inputs = [parameter for parameter in user_operator(operator, "it").parameters if parameter.name != "name"]
    told = words(operator, "broadcasting", shapes=[((4, 6), "float64")] * len(inputs))
    assert told.startswith(expected)
    assert len(told.splitlines()) == 1


def test_a_gradient_in_one_of_two_results_is_a_difference():
    one, none = Result([np.ones(2)], [np.ones(2)]), Result([np.ones(2)], [None])
    assert one.differs_from(none) == one.far_from(none, 0.1) == none.differs_from(one) == "gradient"
    assert none.differs_from(none) == ""


# --- How a gradient is off ---


def squared(x):
    return x * x


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (squared, lambda x, dy: dy * x, "it is half of what it should be"),
        (squared, lambda x, dy: -2 * x * dy, "it has the opposite sign"),
        (squared, lambda x, dy: 4 * x * dy, "it is twice what it should be"),
        (squared, lambda x, dy: 0.5 * x * dy, "it is 1/4 of what it should be"),
        (squared, lambda x, dy: 3 * x * dy, "it is 1.5 times what it should be"),
        (lambda x: x * x + x, lambda x, dy: 2 * x * dy, "; dy is missing in it"),
        (lambda x: np.where(x > 0, x, 0.1 * x), lambda x, dy: dy * (x > 0), "; it is zero where x < 0"),
        (lambda x: x * x + np.maximum(x, 0), lambda x, dy: 2 * x * dy, "; dy is missing in it where x > 0"),
        (
            lambda x, w: x * w * w,
            lambda x, w, dy: (2 * x * w * dy, w * w * dy),
            "it is that of w: are they returned in",
        ),
        (lambda x, w: x @ w, lambda x, w, dy: (dy @ w.T, (x.T @ dy).T), "it is transposed"),
    ],
)
def test_a_wrong_gradient_is_explained(forward: Any, backward: Any, expected: str):
    given = {"shapes": [((4, 3), "float64"), ((3, 3), "float64")]} if "transposed" in expected else {}
    assert expected in words(with_backward(forward, backward), "gradient", **given)


def parted(x):
    return x * x


def parted_grad(x, dy):
    return np.where(x > 1, 3 * x, 2 * x) * dy


def test_a_wrong_gradient_names_the_line_of_backward_and_the_input():
    line = place("def parted_grad(x, dy):")
    told = words(with_backward(parted, parted_grad), "gradient")
    at, x = re.search(r"worst at (.*), x = (.*): backward \(parted_grad, (.*)\) gives", told).group(2, 3)
    assert (float(at) > 1, x) == (True, line)
    in_a_class = words(Halved, "gradient")
    assert re.search(rf"backward \(backward, {HERE.name}:\d+\) gives", in_a_class)


class Halved(app.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy


@pytest.mark.parametrize("step", [np.sign, np.round, lambda x: np.round(x * 4) / 4])
def test_a_gradient_where_the_derivative_is_0_may_be_a_surrogate(step: Any):
    told = words(with_backward(lambda x: step(x), lambda x, dy: dy * 1.0), "gradient")
    assert told.startswith("FAILED")
    assert "straight-through estimator, declare surrogate=True" in told
    assert "missing" not in told


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (lambda x: np.exp(x) + x, lambda x, y, dy: dy),
        (lambda x: np.maximum(x, 0), lambda x, dy: dy * np.where(x == 0, 5.0, x > 0)),  # at the kink alone
    ],
)
def test_an_error_without_a_known_cause_is_not_explained(forward: Any, backward: Any):
    told = words(with_backward(forward, backward), "gradient")
    assert told.startswith("FAILED")
    assert "missing" not in told
    assert "where x" not in told


# --- Reasons of Numba ---


def test_a_stored_reason_has_the_line_of_the_function_at_hand():
    text = "def f(x):\n    with open('/dev/null') as file:\n        file.read()\n    return x\n"
    for _ in range(2):
        function = module_of_text(text).f
        assert f"({function.__code__.co_filename}:1: `def f(x):`)" in words(in_numba(function), "inlined")


def test_a_reason_has_words_and_no_colours():
    nameless = f"Numba itself failed, with AssertionError {quoted('def caught(x):')}"
    assert why_refused(AssertionError(), caught) == nameless
    coloured = AssertionError("\x1b[1m\x1b[1mUntyped global name 'f'\x1b[0m:\x1b[0m \x1b[1mno type\x1b[0m")
    assert why_refused(coloured, caught).startswith("Untyped global name 'f': no type (")


# --- Operators that do not run ---


def undefined(x):
    return x * no_such_name  # noqa: F821


def asserts(x):
    if x.ndim >= 0:
        raise AssertionError
    return x


class CallsNumba(app.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return app.to_tensor(njit(calls_helper)(x.numpy()))


class NoSuchName(app.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return no_such_name * x  # noqa: F821


class RaisesInBackward(app.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        raise KeyError("k")


UNDEFINED = "name 'no_such_name' is not defined"
RETURNED = "returned … expected a"
OUTPUTS = 'custom_op(outputs=["low", "high"])'
ASSERTS = f"raised AssertionError: `raise AssertionError` ({place('raise AssertionError')})"


@pytest.mark.parametrize(
    ("operator", "expected", "advice"),
    [
        (custom_op(undefined), f"…{UNDEFINED} ({place('return x * no_such_name  # noqa: F821')})", False),
        (elementwise(undefined), f"…{UNDEFINED}", False),
        (custom_op(njit(undefined)), f"…{UNDEFINED}", False),
        (NoSuchName, f"…{UNDEFINED} ({place('return no_such_name * x  # noqa: F821')})", False),
        (custom_op(lambda x: (x, x * 2)), f"…{OUTPUTS}", False),
        (elementwise(lambda x: (x, x * 2)), f"…{OUTPUTS}", False),
        (custom_op(lambda x: None), f"…{RETURNED}", False),
        (elementwise(lambda x: None), f"…{RETURNED}", False),
        (custom_op(lambda x: "text"), f"…{RETURNED}", False),
        (elementwise(lambda x: "text"), f"…{RETURNED}", False),
        (custom_op(njit(with_a_file)), "…Numba cannot compile its function with_a_file: The 'with ", False),
        (CallsNumba, f"…Numba cannot compile it: Untyped global …{quoted('return plain_helper(x)')}", False),
        (custom_op(asserts), f"…{ASSERTS}; on x float64[4, 6] and all other inputs that were tried", False),
        (custom_op(njit(asserts)), f"…{ASSERTS}; on x float64[4, 6] and all other inputs that were tried", False),
        (custom_op(lambda x: x.reshape(7, 7)), "no inputs were found …cannot reshape", True),
    ],
)
def test_other_inputs_are_advised_unless_the_mistake_is_in_the_code(operator: Any, expected: str, advice: bool):
    with as_python(False), pytest.raises(OperatorError) as caught_error:
        inputs_for(user_operator(operator, "it"))
    told = str(caught_error.value)
    assert is_like(told, expected)
    assert ("--shape 4,8 --shape 8" in told and "--range=-1,1" in told) == advice


def test_an_error_in_backward_has_its_line_in_every_check():
    told = words(RaisesInBackward, "gradient", "empty batch", "nan and inf").splitlines()
    line = place('raise KeyError("k")')
    assert told[0] == f"FAILED KeyError: 'k' ({line})"
    assert len(told) == 3
    assert all(each.endswith(told[0].removeprefix("FAILED ")) for each in told)


NAN_AT_ZERO = "where inputs are 0, the gradient of x is NaN, "


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (lambda x: x * x, lambda x, dy: dy * 2 * x * x / x, f"FAILED {NAN_AT_ZERO}finite differences give 0"),
        (
            lambda x: np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x)),
            lambda x, dy: dy * (x * np.cos(x) - np.sin(x)) / (x * x),
            f"FAILED {NAN_AT_ZERO}finite differences give",
        ),
        (lambda x: np.abs(x) ** 1.5, lambda x, y, dy: dy * 1.5 * y / x, f"FAILED {NAN_AT_ZERO}finite differences give"),
        (lambda x: np.abs(x), lambda x, y, dy: dy * x / y, f"note {NAN_AT_ZERO}at a kink\nok 24 elements agree"),
        (lambda x: np.cbrt(x), lambda x, y, dy: dy * y / (3 * x), "ok 24 elements agree"),  # no slope at 0
        (lambda x: x / np.abs(x), lambda x, dy: 0 * dy / x, "ok 24 elements agree"),  # nor a result
    ],
    ids=["square", "sinc", "power", "abs", "cbrt", "sign"],
)
def test_a_gradient_that_is_nan_where_the_function_has_a_slope_is_wrong(forward: Any, backward: Any, expected: str):
    with np.errstate(all="ignore"):
        assert words(with_backward(forward, backward), "gradient").startswith(expected)


def test_a_backward_that_raises_at_special_numbers_is_a_note():
    determinant = with_backward(lambda x: np.linalg.det(x), lambda x, y, dy: dy * y * np.linalg.inv(x).T)
    one, other = words(determinant, "gradient", shapes=[((3, 3), "float64")]).splitlines()
    assert one.startswith("note where inputs are 0, backward raises ")
    assert "LinAlgError: Singular matrix (test_check_verdicts.py:" in one
    assert other.startswith("ok 9 elements agree")


def test_an_error_without_rows_is_a_note_where_rows_depend_on_each_other():
    def centred(x):
        return x - x.max(axis=0, keepdims=True)

    reason = "a batch without rows raises .*zero-size array to reduction operation maximum"
    assert re.match(f"note {reason}", words(custom_op(centred), "empty batch"))


def test_a_function_without_source_fails_once_and_names_the_prompt():
    made: dict[str, Any] = {}
    exec(compile("def doubled(x):\n    return x * 2\n", "<stdin>", "exec"), made)
    operator = elementwise(made["doubled"])
    findings = app.check(operator)
    reason = "Python's prompt keeps none before Python 3.13"
    assert str(findings).count(reason) == 1
    assert "ok" not in {v.state for v in findings if v.check in ("gradient", "second")}
    x = app.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(OperatorError, match=reason) as error:
        operator(x).backward()
    assert error.value.__cause__ is None  # one traceback, of the reason


# --- Layers ---


WRONG_FOR_SCALE = with_backward(lambda x, scale: x * scale, lambda x, scale, dy: (dy * scale, 2 * (dy * x).sum(0)))


class Scaled(app.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.inner = app.nn.Linear(6, 6)
        self.scale = self.create_parameter([6])

    def forward(self, x: Any, shift: float = 0.0) -> Any:
        return WRONG_FOR_SCALE(app.relu(self.inner(x)), self.scale) + shift


@pytest.mark.parametrize("layer", [Scaled, Scaled()])
def test_parameters_are_inputs_whose_gradients_are_checked(layer: Any):
    subject = inputs_for(user_operator(layer, "mine"))
    inputs = "x float64[4, 6], scale float64[6], inner_weight float64[6, 6], inner_bias float64[6]"
    assert ", ".join(map(str, subject.inputs)) == inputs
    verdicts = list(examine(subject, ["gradient"]))
    assert [v.words.partition(" is wrong")[0] for v in verdicts if v.failed] == ["that of scale"]


def test_a_layer_keeps_its_parameters():
    layer = Scaled()
    before = dict(layer.named_parameters())
    list(examine(inputs_for(user_operator(layer, "mine")), ["gradient", "shapes"]))
    after = dict(layer.named_parameters())
    assert list(after) == list(before)
    assert all(after[path] is before[path] is getattr(layer, path, before[path]) for path in before)


# --- Settings that are whole numbers ---


def is_top(x, k):
    return x >= np.sort(x, axis=1)[:, -min(k, x.shape[1])][:, None]


def top(x, k=20):
    return x * is_top(x, k)


def first(x, k=4):
    return x * (np.arange(x.shape[1]) < k)


@pytest.mark.parametrize(
    ("forward", "backward", "text"),
    [
        (
            top,
            lambda x, dy, k: dy * is_top(x, k),
            "ok the gradient is right with k=20 and x float64[4, 23]; k=19; k=21, too",
        ),
        (top, lambda dy: dy, "FAILED with k=20 and x float64[4, 23], that of x is wrong in 12 of 92 elements; worst"),
        (
            first,
            lambda x, dy: first(dy),
            "FAILED with k=3, that of x is wrong in 4 of 24 elements",
        ),
    ],
)
def test_other_whole_numbers_and_a_width_above_them_are_tried(forward, backward, text):
    (verdict,) = examine(inputs_for(user_operator(with_backward(forward, backward), "operator")), ["settings"])
    assert f"{verdict.state} {verdict.words}".startswith(text)


def cumulative(x, axis=-1):
    return np.cumsum(x, axis=axis)


def test_another_axis_is_tried_for_a_negative_one_as_a_setting():
    one = with_backward(cumulative, lambda dy: np.cumsum(dy[:, ::-1], axis=1)[:, ::-1])
    (verdict,) = examine(inputs_for(user_operator(one, "operator")), ["settings"])
    assert verdict.words.startswith("with axis=-2, that of x is wrong")


def limited(x, low=-1.0):
    return np.maximum(x, low)


def test_a_default_in_a_mask_is_found_where_few_numbers_lie_between_it_and_another_setting():
    one = with_backward(limited, lambda x, dy: dy * (x >= -1.0))
    (verdict,) = examine(inputs_for(user_operator(one, "operator")), ["settings"])
    assert verdict.words.startswith("with low=-1.25, ")
