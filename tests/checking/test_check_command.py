"""`opsmith check`: what it prints, and its exit status."""

from __future__ import annotations

import importlib
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from as_python import uncompiled

import app
from app.__main__ import main
from app.checking.checks import CHECKS
from app.checking.checks import Check as OneCheck
from app.errors import AppError
from app.testing import check_operator

__all__ = ["uncompiled"]

pytestmark = pytest.mark.slow

OPERATORS = """
import numpy as np
import app

@app.custom_op(elementwise=True, like="silu")
def swish(x):
    return x / (1 + np.exp(-x))

def forward(x):
    return x * x

def wrong(x):
    return app.static.py_func(forward, x, app.static.InputSpec(x.shape, x.dtype), lambda x, y, dy: dy * x)

class Twice(app.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2

@app.custom_op
def squared(x):
    return x * x

@squared.backward
def squared_grad(x, dy):
    return (2 * x * dy).sum(0)

class Needy(app.nn.Layer):
    def __init__(self, size):
        pass

def helper(x, out):
    raise RuntimeError("nobody asked for it")

VALUE = 3
"""

Check = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], uncompiled: None
) -> Check:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the command adds the working folder
    Path("some_ops.py").write_text(OPERATORS)
    Path("none.py").write_text("x = 1\n")

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["check", *words])
        return status, *capsys.readouterr()

    return run


RIGHT = r"""swish  custom_op, elementwise, some_ops.py:5; checked on x float64\[4, 6\] in \[-2, 2\]
  ok      gradient       24 elements agree with finite differences; worst at \[.*
(.*\n)*  3 passed
"""
WRONG = r"""(.*\n)*  FAILED  gradient       that of x is wrong in 24 of 24 elements; worst at \[.*
(.*\n)*  1 FAILED: gradient; 1 passed
"""


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (["some_ops.py:swish", "--only", "gradient,like,rows"], 0, RIGHT),
        (["some_ops.py:wrong", "--only", "gradient,rows"], 1, WRONG),
        (["some_ops:swish", "--only", "rows"], 0, r"swish  (.*\n)*"),
        (["tanh", "--only", "gradient"], 0, r"tanh  (.*\n)*"),
        (
            ["some_ops.py:swish", "--shape", "3,5", "--range=0,1", "--only", "rows"],
            0,
            r".*checked on x float64\[3, 5\] in \[0, 1\]\n(.*\n)*",
        ),
    ],
)
def test_the_command_prints_verdicts(check: Check, words: list[str], status: int, expected: str):
    actual, out, err = check(*words)
    assert (actual, err) == (status, "")
    assert re.fullmatch(expected, out), out


def test_a_mistake_that_makes_several_checks_fail_is_printed_once(check: Check):
    mistake = "the gradient of x has shape [6], expected that of x, [4, 6]"
    status, out, _ = check("some_ops.py:squared", "--only", "gradient,proportional,rows,empty batch")
    assert status == 1
    assert (out.count(mistake), out.count("FAILED  ")) == (1, 1)
    assert out.endswith("  1 FAILED: gradient (and for the same reason proportional, empty batch, rows); 0 passed\n")
    printed = str(app.check("some_ops.py:squared", only=["gradient", "proportional", "rows", "empty batch"]))
    assert printed.count(mistake) == 1


def test_a_misspelt_check_is_a_failure(check: Check):
    wrong: Any = 3
    for only in (["gradients"], "gradient,like", ["gradient", "rows and columns"], wrong):
        findings = app.check("some_ops.py:wrong", only=only)
        assert not findings.ok
        assert "there is no check" in str(findings)
    assert [verdict.check for verdict in app.check("some_ops.py:wrong", only="gradient")] == ["gradient"]
    assert check_operator("some_ops.py:swish", only="rows", also="rows").ok


def test_other_wrong_arguments_are_findings_too(check: Check):
    wrong: Any = 3
    assert "like is 3: expected an operator or the name of one" in str(app.check("some_ops.py:swish", like=wrong))
    for name in ("seed", "also"):  # which check_operator has
        text = str(app.check("some_ops.py:swish", **{name: wrong}))
        assert f"swish has no parameter '{name}' to set; it takes x\n" in text


def test_a_layer_may_take_any_number_of_inputs_and_have_parameters_with_numbers_for_names(check: Check):
    assert app.check(app.nn.ReLU, only="gradient").ok
    assert app.check(app.nn.Sequential(app.nn.Linear(6, 3)), only="gradient").ok


def test_a_named_check_that_does_not_apply_says_so(check: Check):
    status, out, _ = check("some_ops.py:Twice", "--only", "settings,like")
    assert (status, out.splitlines()[1:]) == (
        0,
        [
            "  note    settings       it does not apply to this operator",
            "  note    like           there is no operator to compare with: name one with `like`",
            "  0 passed, 2 notes",
        ],
    )


def test_shapes_are_one_for_each_input_and_a_range_has_two_ends(check: Check):
    assert app.check("some_ops.py:swish", shapes=[(3, 5)], within=(0, 1), only="rows").ok
    wrong: Any = (4, 6)
    shapes = str(app.check("some_ops.py:swish", shapes=wrong))
    assert "a shape is 4: expected one for each input, such as shapes=[(4, 6)]" in shapes
    assert "a shape is 3: expected one for each input" in str(app.check("some_ops.py:swish", shapes=cast(Any, 3)))
    for within in (1, (0, 1, 2), ("low", "high")):
        text = str(app.check("some_ops.py:swish", within=cast(Any, within)))
        assert f"within is {within!r}: expected two numbers, such as within=(0, 1)" in text


def test_a_file_is_checked_as_it_is_now_also_if_it_was_imported_before(check: Check, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(Path.cwd())
    text = "import app\n\n@app.custom_op\ndef scaled(x):\n    return 2 * x\n\n"
    text += "@scaled.backward\ndef scaled_grad(x, dy):\n    return SLOPE * dy\n"
    Path("edited_ops.py").write_text(f"{text}SLOPE = 3.0\n")
    module = importlib.import_module("edited_ops")
    assert not app.check("edited_ops.py:scaled", only="gradient").ok
    Path("edited_ops.py").write_text(f"{text}SLOPE = 2.0\n")
    assert app.check("edited_ops.py:scaled", only="gradient").ok
    assert not app.check(module.scaled, only="gradient").ok


def test_all_operators_in_a_file_are_checked_and_a_wrong_one_decides(check: Check):
    status, out, _ = check("some_ops.py", "--only", "gradient")
    assert status == 1
    *lines, last = out.splitlines()
    heads = [line.partition(";")[0] for line in lines if line[:1].strip()]
    assert heads == [
        "swish  custom_op, elementwise, some_ops.py:5",
        "wrong  py_func, some_ops.py:12",
        "Twice  Function, some_ops.py:15",
        "squared  custom_op, some_ops.py:24",
    ]
    assert last == "2 of 4 operators failed: wrong, squared"


def test_operators_in_a_file_are_counted(check: Check):
    Path("two_ops.py").write_text(
        "import app\n@app.custom_op\ndef one(x):\n    return x\ntwo = app.custom_op(one.function)\n"
    )
    assert check("two_ops.py", "--only", "types")[1].splitlines()[-1] == "all 2 operators passed"
    several = "two_ops.py has 2 operators; name one of them: two_ops.py:NAME, of one, two"
    assert several in str(app.check("two_ops.py"))
    with pytest.raises(AppError, match=several):
        app.inspect("two_ops.py")


def test_what_an_operator_prints_is_no_part_of_the_json(check: Check):
    Path("printing.py").write_text(
        "import opsmith\nprint('at import')\n@opsmith.custom_op\ndef f(x):\n    print('called')\n    return x * 2.0\n"
    )
    _, out, err = check("printing.py", "--only", "repeatable", "--json")
    assert [json.loads(line)["check"] for line in out.splitlines()] == ["repeatable"]
    assert err.startswith("at import\ncalled\n")


def test_verdicts_are_printed_as_json(check: Check):
    status, out, _ = check("some_ops.py:Twice", "custom.relu", "--only", "rows", "--json")
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [(f["operator"], f["check"], f["state"]) for f in verdicts] == [
        ("Twice", "rows", "ok"),
        ("custom.relu", "rows", "ok"),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.py"], "there is no file .*nowhere.py"),
        (
            ["some_ops.py:swich"],
            "some_ops.py has no 'swich'; did you mean 'swish'. It has swish, forward, wrong, Twice",
        ),
        (["none.py"], "none.py defines no custom operator: what @custom_op makes, a PyLayer or Function, or a "),
        (["some_ops.py:VALUE"], "VALUE is int, expected an operator"),
        (["swish"], "'swish' names no operator: give file.py, file.py:name, module:name, custom.relu or a"),
        (["some_ops.py:Needy"], r"Needy cannot be made without arguments \(TypeError: "),
        (["no_such_module:swish"], "the module no_such_module cannot be imported"),
        *[([f"{name}:swish"], f"'{name}:swish' names no operator: give file.py") for name in ("", ".", "..", "a..b")],
        (["custom.rely"], r"did you mean 'custom\.relu'"),
        (
            ["some_ops.py:swish", "--only", "gradients"],
            "--only: there is no check 'gradients'; there are bounds, range",
        ),
        (["some_ops.py:swish", "--shape", "4,x"], "--shape 4,x: expected whole numbers with commas"),
        (["some_ops.py:swish", "--shape", "0"], "--shape 0: sizes must be at least 1"),
        (["some_ops.py:swish", "--shape", "4:int"], "--shape 4:int: there is no type 'int'; there are"),
        (["some_ops.py:swish", "--shape", "4", "--shape", "4"], "--shape was given 2 times, but swish takes 1: x"),
        (["some_ops.py:swish", "--set", "slope"], "--set slope: expected NAME=VALUE"),
        (["some_ops.py:swish", "--set", "slope=1"], "swish has no parameter 'slope' to set; it takes x"),
        (["some_ops.py:swish", "--set", "shape=1"], "no parameter 'shape' to set; it takes x; did you mean 'shapes'?"),
        (["some_ops.py:swish", "--range", "-1"], "--range -1: expected two numbers"),
        (["some_ops.py:swish", "--like", "Swish"], "there is no operator 'Swish'; did you mean 'custom.swish'?"),
        (["some_ops.py:swish", "--range=1"], "--range 1: expected two numbers"),
        (["some_ops.py:swish", "--range=2,1"], "the first number must be below the second"),
        (["some_ops.py:swish", "--range=0,inf"], "the range 0,inf: expected finite numbers"),
        (["some_ops.py:swish", "--like", "nonsense"], "there is no operator 'nonsense'"),
        *[
            (["some_ops.py:swish", "--exhaustive", f"--{option}"], f"--{option[:4]}.* has no effect with --exhaustive")
            for option in ("shape=4", "range=0,1", "only=gradient", "also=vmap")
        ],
        *[
            (["some_ops.py:swish", "--like", f"relu({settings})"], r"'relu\(.*\)' cannot be read; write settings as in")
            for settings in ("1", "a=1,a=2", "**{}", "a={[]:1}")
        ],
        *[
            (["some_ops.py:swish", "--set", f"slope={value}"], "swish has no parameter 'slope' to set; it takes x")
            for value in ("{[]:1}", "-" * 3000 + "1")
        ],
    ],
)
def test_wrong_usage_is_an_error_of_one_line_and_status_2(check: Check, words: list[str], message: str):
    status, out, err = check(*words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert re.search(message, err)


def test_operators_that_a_file_makes_of_imported_functions_and_partials_are_its_own(check: Check):
    Path("helper_functions.py").write_text(
        "import opsmith\ndef scaled(x, by=3.0): return x * by\nthrice = opsmith.custom_op(scaled)\n"
    )
    Path("making.py").write_text(
        "import functools\nimport opsmith\nfrom helper_functions import scaled, thrice\n"
        "mine = opsmith.custom_op(scaled)\ntwice = opsmith.custom_op(functools.partial(scaled, by=2.0))\n"
    )
    _, out, _ = check("making.py", "--only", "repeatable")
    assert re.findall(r"^(\w+)  custom_op", out, re.MULTILINE) == ["mine", "twice"]


def test_an_operator_on_integers_alone_has_no_floats_whose_type_is_kept(check: Check):
    status, out, _ = check("some_ops.py:swish", "--shape", "4,6:int64", "--only", "types,gradient")
    assert status == 0, out
    assert "note    types          it does not apply to this operator" in out


def test_a_lambda_that_is_not_inlined_is_named_as_the_reason(check: Check):
    Path("lambdas.py").write_text("import opsmith\nf = opsmith.custom_op(lambda x: x * 4.0)\n")
    _, out, _ = check("lambdas.py", "--only", "inlined")
    assert "not inlined because it is a lambda: write a def, lambdas.py:2" in out


def test_what_an_operator_must_support_in_another_framework_does_not_apply_to_ones_of_opsmith(check: Check):
    _, out, _ = check("some_ops.py:swish", "--only", "range", "--also", "compile")
    assert "note    compile        it does not apply to this operator" in out


def test_a_file_that_raises_is_an_error_with_its_line(check: Check):
    Path("broken.py").write_text("1 / 0\n")
    status, _, err = check("broken.py")
    assert status == 1
    assert "broken.py:1: running the file raised ZeroDivisionError" in err


@pytest.mark.parametrize("text", ["1 / 0", "def broken(:", "raise SystemExit(0)"])
def test_a_module_that_cannot_be_imported(check: Check, text: str):
    Path("broken_module.py").write_text(f"{text}\n")
    status, _, err = check("broken_module:swish")
    assert status == 1
    assert err.startswith("error: the module broken_module cannot be imported: ")
    assert err.count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Terminal:
    terminal = Terminal()
    for name, value in {"TERM": "xterm", "COLUMNS": "60", "NO_COLOR": "", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal)
    return terminal


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_on_a_terminal_lines_have_colours_and_are_wrapped_at_words(
    check: Check, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
):
    terminal = on_a_terminal(monkeypatch, **environment)
    check("some_ops.py:wrong", "--only", "gradient,rows")
    text = terminal.getvalue()
    assert ("\x1b[1;31mFAILED\x1b[0m" in text and "\x1b[32mok    \x1b[0m" in text) == (not environment)
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= 60
    assert (
        "  FAILED  gradient       that of x is wrong in 24 of 24\n                         elements; worst at ["
        in plain
    )


def test_each_line_is_printed_as_it_is_known(check: Check, monkeypatch: pytest.MonkeyPatch):
    terminal = on_a_terminal(monkeypatch, NO_COLOR="1")
    seen: list[str] = []
    monkeypatch.setitem(CHECKS, "rows", OneCheck(lambda subject: seen.append(terminal.getvalue()) or []))
    check("some_ops.py:swish", "--only", "gradient,rows")
    assert "gradient" in seen[0]
