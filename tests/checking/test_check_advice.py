"""What the checks say that a new user can act on: how a gradient is off, why inputs were narrowed, what Numba said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from custom.made_functions import module_of_text
from numba import njit

import app
from app import custom_op
from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.finding import found
from app.engine.compiled.read_only import why_refused
from app.errors import OperatorError

pytestmark = pytest.mark.slow


def words(operator: Any, *only: str, **given: Any) -> str:
    return "\n".join(f"{v.state} {v.words}" for v in examine(inputs_for(found(operator, "it"), **given), only))


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.strip() == text)


def with_backward(forward: Any, backward: Any, **options: Any) -> Any:
    operator = custom_op(forward, name="it", **options)
    operator.backward(backward)
    return operator


# The range of inputs


def test_a_range_that_was_narrowed_for_nan_is_told():
    logarithm = custom_op(lambda x: np.log(x), name="logarithm", elementwise=True)
    told = words(logarithm, "range")
    assert told.startswith("note inputs from [-2, 2] gave NaN at x = -")
    assert told.endswith("; checked on [0.1, 2]")
    assert words(custom_op(lambda x: x * x, name="squared", elementwise=True), "range") == ""  # not narrowed


def test_a_range_that_was_narrowed_for_an_error_is_told_with_its_line():
    @custom_op(infer=lambda x: x)
    def small(x):
        if x.max() > 1:
            raise ValueError("too large")
        return x * 2

    line = line_of('raise ValueError("too large")')
    told = words(small, "range")
    assert "inputs from [-2, 2] gave an error: " in told
    assert f"raised ValueError: too large (test_check_advice.py:{line})" in told
    assert told.endswith("; checked on [-0.9, 0.9]")


# How a gradient is off


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (lambda x: x * x, lambda x, dy: dy * x, "it is half of what it should be"),
        (lambda x: x * x, lambda x, dy: -2 * x * dy, "it has the opposite sign"),
        (lambda x: x * x, lambda x, dy: 4 * x * dy, "it is twice what it should be"),
        (lambda x: x * x, lambda x, dy: 0.5 * x * dy, "it is 1/4 of what it should be"),
        (lambda x: x * x, lambda x, dy: 3 * x * dy, "it is 1.5 times what it should be"),
        (lambda x: x * x + x, lambda x, dy: 2 * x * dy, "; dy is missing in it"),
        (lambda x: np.where(x > 0, x, 0.1 * x), lambda x, dy: dy * (x > 0), "; it is zero where x < 0"),
        (lambda x: x * x + np.maximum(x, 0), lambda x, dy: 2 * x * dy, "; dy is missing in it where x > 0"),
        (lambda x: np.exp(x) + x, lambda x, y, dy: dy, "; -1 * x * dy is missing in it"),
    ],
)
def test_a_gradient_that_is_off_says_how(forward: Any, backward: Any, expected: str):
    told = words(with_backward(forward, backward), "gradient")
    if expected.startswith("; -1"):  # what no term explains is not explained
        assert "missing" not in told
    else:
        assert expected in told


def test_gradients_in_the_wrong_order_or_transposed_say_so():
    swapped = with_backward(lambda x, w: x * w * w, lambda x, w, dy: (2 * x * w * dy, w * w * dy))
    assert "it is that of w: are they returned in the order of the inputs?" in words(swapped, "gradient")
    turned = with_backward(lambda x, w: x @ w, lambda x, w, dy: (dy @ w.T, (x.T @ dy).T))
    assert "it is transposed" in words(turned, "gradient", shapes=[((4, 3), "float64"), ((3, 3), "float64")])


# Surrogates


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


def straight_through() -> Any:
    operator = custom_op(sign)

    @operator.backward(surrogate=True)
    def _(x, dy):
        return dy * (np.abs(x) < 1)

    return operator


@pytest.mark.parametrize(
    "operator", [straight_through(), StraightThrough, with_py_func], ids=["op", "layer", "py_func"]
)
def test_a_declared_surrogate_passes_and_is_told(operator: Any):
    told = words(operator, "gradient", "settings")
    assert told.startswith("ok declared a surrogate: it differs from finite differences in ")
    assert told.endswith("elements, as meant")


def test_an_undeclared_one_fails_and_a_needless_declaration_is_a_note():
    assert words(with_backward(sign, lambda x, dy: dy * 1.0), "gradient").startswith("FAILED that of x is wrong")
    exact = custom_op(lambda x: x * x, name="exact")
    exact.backward(surrogate=True)(lambda x, dy: 2 * x * dy)
    assert words(exact, "gradient").startswith("note it is declared a surrogate, but agrees")


# Numba's reason


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


@pytest.mark.parametrize(
    ("function", "reason", "line"),
    [
        (with_a_file, "The 'with (context manager) as (variable):' construct is not supported", "def with_a_file(x):"),
        (caught, "Exception object cannot be stored into variable (error)", "except KeyError as error:"),
    ],
)
def test_numbas_reason_comes_with_a_line_of_the_user(function: Any, reason: str, line: str):
    operator = with_backward(function, lambda x, dy: dy, elementwise=True)
    expected = f"Numba cannot compile {function.__name__}: {reason} (test_check_advice.py:{line_of(line)}: `{line}`)"
    assert f"Python call: {expected}" in words(operator, "inlined")


def test_a_reason_that_is_known_of_the_same_code_elsewhere_has_the_line_of_this_one():
    text = "def f(x):\n    with open('/dev/null') as file:\n        file.read()\n    return x\n"
    for _ in range(2):
        function = module_of_text(text).f
        told = words(with_backward(function, lambda x, dy: dy, elementwise=True), "inlined")
        assert f"({function.__code__.co_filename}:1: `def f(x):`)" in told


def test_an_error_of_numba_without_words_says_what_it_is():
    place = f"test_check_advice.py:{line_of('def caught(x):')}"
    assert why_refused(AssertionError(), caught) == (
        f"Numba itself failed, with AssertionError ({place}: `def caught(x):`)"
    )


def test_numbas_reason_has_no_colours():
    coloured = AssertionError("\x1b[1m\x1b[1mUntyped global name 'f'\x1b[0m:\x1b[0m \x1b[1mno type\x1b[0m")
    assert why_refused(coloured, caught).startswith("Untyped global name 'f': no type (")


def test_numbas_reason_has_the_signature_that_it_does_not_know():
    def drawn(x):
        return x + np.random.normal(size=x.shape)

    assert "found for signature: >>> normal(size=UniTuple(int64 x 2))" in words(custom_op(drawn), "inlined")


def plain_helper(x):
    return x * 2


def test_a_helper_that_is_plain_python_is_named_with_what_to_write():
    told = words(custom_op(lambda x: plain_helper(x), elementwise=True, name="it"), "inlined")
    assert "<class 'function'>; put @njit above plain_helper (test_check_advice.py:" in told


@njit
def calls_plain_python(x):
    return plain_helper(x)


class CallsNumba(app.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return app.to_tensor(calls_plain_python(x.numpy()))


def test_numbas_reason_is_told_of_a_function_that_a_layer_calls():
    line = line_of("return plain_helper(x)")
    reason = rf"Numba cannot compile it: Untyped global name 'plain_helper': .*{line}: `return plain_helper\(x\)`"
    with pytest.raises(OperatorError, match=reason) as caught_error:
        inputs_for(found(CallsNumba, "it"))
    assert "--shape" not in str(caught_error.value)


def test_plain_python_that_would_not_compile_says_why():
    def evaluated(x):
        return x * eval("2")

    told = words(custom_op(evaluated), "inlined")
    assert "its function is plain Python, test_check_advice.py" in told
    assert "; Numba cannot compile it: " in told


# Mistakes in the code, for which no other inputs would do


def undefined(x):
    return x * no_such_name  # noqa: F821


def pair(x):
    return x, x * 2


def nothing(x):
    x * 2


def a_text(x):
    return "text"


UNDEFINED = "name 'no_such_name' is not defined"
RETURNED = r"returned .*expected a"
OUTPUTS = r'custom_op\(outputs=\["low", "high"\]\)'


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (undefined, {}, rf"{UNDEFINED} \(test_check_advice\.py:{line_of('return x * no_such_name  # noqa: F821')}"),
        (undefined, {"elementwise": True}, UNDEFINED),
        (njit(undefined), {}, UNDEFINED),
        (pair, {}, OUTPUTS),
        (pair, {"elementwise": True}, OUTPUTS),
        (nothing, {}, RETURNED),
        (nothing, {"elementwise": True}, RETURNED),
        (a_text, {}, RETURNED),
        (a_text, {"elementwise": True}, RETURNED),
        (njit(with_a_file), {}, "Numba cannot compile its function with_a_file: The 'with "),
    ],
)
def test_a_mistake_in_the_code_ends_in_no_advice_about_shapes(function: Any, options: dict[str, Any], message: str):
    with pytest.raises(OperatorError, match=message) as caught_error:
        inputs_for(found(custom_op(function, **options), "it"))
    assert "--shape" not in str(caught_error.value)


# Errors of the user's code


class NoSuchName(app.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return no_such_name * x  # noqa: F821

    @staticmethod
    def backward(ctx, dy):
        return dy


class RaisesInBackward(NoSuchName):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        raise KeyError("k")


def test_no_other_shapes_are_tried_where_they_make_no_difference():
    shapes = []

    @custom_op
    def without_gradient(x, y):
        shapes.append((x.shape, y.shape))
        return x + y

    assert inputs_for(found(without_gradient, "it")).low == -2
    assert set(shapes) == {((4, 6), (4, 6))}


def test_an_error_of_a_layer_has_its_line():
    line = line_of("return no_such_name * x  # noqa: F821")
    with pytest.raises(OperatorError, match=rf"'no_such_name' is not defined \(test_check_advice\.py:{line}\)"):
        inputs_for(found(NoSuchName, "it"))
    line = line_of('raise KeyError("k")')
    told = words(RaisesInBackward, "gradient", "empty batch", "nan and inf").splitlines()
    assert told[0] == f"FAILED KeyError: 'k' (test_check_advice.py:{line})"
    assert len(told) == 3
    assert all(each.endswith(told[0].removeprefix("FAILED ")) for each in told)


def asserts(x):
    if x.ndim >= 0:
        raise AssertionError
    return x


@pytest.mark.parametrize("function", [asserts, njit(asserts)], ids=["python", "numba"])
def test_an_error_without_words_shows_its_line(function: Any):
    line = line_of("raise AssertionError")
    shown = rf"raised AssertionError: `raise AssertionError` \(test_check_advice\.py:{line}\)"
    with pytest.raises(OperatorError, match=shown):
        inputs_for(found(custom_op(function), "it"))


def test_results_that_are_no_floats_are_named_where_a_gradient_is_missed():
    told = words(with_backward(lambda x: x > 0, lambda x, dy: dy), "gradient")
    assert told == "FAILED it has no gradient, as its results are bool: only floats have gradients"


# Remarks that are false


def test_an_operator_of_positive_numbers_is_given_no_negative_infinity():
    @custom_op(elementwise=True)
    def positive(x):
        if x < 0:
            raise ValueError("negative")
        return x * x

    assert words(positive, "nan and inf").startswith("ok")


def test_an_operator_that_draws_numbers_is_told_so_and_nothing_else():
    random = np.random.default_rng(0)
    dropout = with_backward(lambda x: x * (random.random(x.shape) < 0.5), lambda x, dy: dy)
    failures = list(examine(inputs_for(found(dropout, "dropout")), ["repeatable", "rows", "layout", "types"]))
    assert [(v.check, v.failed) for v in failures] == [("repeatable", True)]
    assert "the same inputs give another result the second time" in failures[0].words
    assert [v.check for v in examine(inputs_for(found(dropout, "dropout")), ["rows"])] == ["repeatable"]


def step(x):
    return 1.0 if x > 0 else -1.0


def clipped(x):
    return x if x > 0 else 0.0


def test_a_rule_that_gives_numbers_for_nan_on_purpose_is_left_alone():
    told = words(custom_op(step, elementwise=True), "nan and inf")
    assert told == "ok NaN in x gives a number, as intended"
    alike = custom_op(clipped, elementwise=True)
    assert words(alike, "nan and inf").startswith("note NaN in x becomes a number")
    chosen = custom_op(lambda x, w: x if x > 0 else w, name="chosen", elementwise=True)
    assert words(chosen, "nan and inf").startswith("note NaN in x becomes")  # that of w comes through where it is taken


# Types


def test_a_result_of_another_type_than_the_input_is_told():
    wide = with_backward(lambda x: x * np.float64(0.5), lambda x, dy: dy * np.asarray(0.5) * np.ones(1))
    told = words(wide, "types")
    assert told.startswith("note y is returned as float64 for float32")
    assert "the gradient of x is returned as float64 for float32, and is cast" in told
    kept = with_backward(lambda x: x * 0.5, lambda x, dy: dy * 0.5)
    assert words(kept, "types") == "ok float32 stays float32, float64 stays float64, and they agree"


def test_what_is_wrong_at_kinks_alone_is_explained_by_the_numbers_there():
    operator = with_backward(
        lambda x: np.maximum(x, 0), lambda x, dy: dy * np.where(x > 0, 1.0, np.where(x == 0, 5.0, 0.0))
    )
    assert words(operator, "gradient").startswith("FAILED")
    assert "where x" not in words(operator, "gradient")


# Operators without a gradient that can be had


def test_a_function_without_source_fails_once_and_names_the_prompt():
    made: dict[str, Any] = {}
    exec(compile("def doubled(x):\n    return x * 2\n", "<stdin>", "exec"), made)
    findings = app.check(custom_op(made["doubled"], name="doubled", elementwise=True))
    reason = "Python's prompt keeps none before Python 3.13"
    assert str(findings).count(reason) == 1
    assert "ok" not in {v.state for v in findings if v.check in ("gradient", "second")}
    x = app.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(OperatorError, match=reason) as error:
        custom_op(made["doubled"], elementwise=True)(x).backward()
    assert error.value.__cause__ is None  # one traceback, of the reason
