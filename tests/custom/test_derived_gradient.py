"""Gradients that are derived from the source of an operator of single numbers, statement by statement."""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
import textwrap
import traceback
from functools import partial
from typing import Any

import numpy as np
import pytest
from as_python import as_python, uncompiled
from modules_of_text import module_of_text, slope
from numba import njit

import app
from app import custom_op, static
from app.autograd import gradcheck, gradgradcheck
from app.custom.references import OperatorTable, read_operators
from app.derivative.making import derived_gradient
from app.derivative.scope import UnderivableError
from app.engine.compiled.explain import explain
from app.errors import GradientError

__all__ = ["uncompiled"]


@njit
def stretched(u, by=2.0):
    if u > 0:
        return u * by
    return u * u * by


def swish(x):
    return x / (1 + np.exp(-x))


def choice(x):
    return math.sqrt(x) + stretched(x * x) if x > 0.5 else abs(x) ** 1.5


REFERRED = custom_op(elementwise=True)(swish)


def points(dtype: str = "float64") -> app.Tensor:
    return app.to_tensor([[-1.3, -0.4, 0.2], [0.7, 1.2, 1.9]], dtype, stop_gradient=False)


def test_the_source_of_the_gradient_can_be_read():
    assert custom_op(swish, elementwise=True).gradient_source == (
        "def swish_grad(x, dout):\n"
        "    v = np.exp(-x)\n"
        "    v2 = 1 + v\n"
        "    v3 = x / v2\n"
        "    return dout * (1.0 / v2 + (v3 if np.isinf(v) else v / v2 * v3))\n"
    )
    names = re.findall(r"^def (\w+)", custom_op(choice, elementwise=True).gradient_source, re.MULTILINE)
    assert names == ["stretched_slopes", "choice_grad"]


def test_settings_reach_the_derived_gradient():
    operator = custom_op(lambda x, slope=0.1: x if x > 0 else x * slope, elementwise=True)
    x = app.to_tensor([-1.0], "float64", stop_gradient=False)
    assert app.grad(operator(x, slope=0.3), x)[0].item() == 0.3
    assert app.grad(operator(x), x)[0].item() == 0.1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: max(x, 0.0), 0),
        (lambda x: max(0.0, x), 0),
        (lambda x: np.maximum(0.0, x), 0),
        (lambda x: np.clip(x, 0.0, None), 0),
        (lambda x: np.clip(x - 1, None, 0.0), 1),
        (lambda x: np.clip(x, 0.0, 1.0), 0),
        (lambda x: np.clip(x + 1, 0.0, 1.0), 0),
        (lambda x: np.clip(x, -1.0, 1.0), 1),
        (lambda x: min(x, 0.0), 0),
        (lambda x: abs(x), 0),
        (lambda x: x if x >= 0 else 0.0, 1),
    ],
)
def test_the_slope_at_a_kink_is_that_of_the_branch_that_runs_or_of_a_constant(function: Any, expected: float):
    assert derived_gradient(function, ["x"], ["dy"])(0.0, 1.0) == expected


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    "function", [swish, lambda x: math.log(1 + np.exp(x)), lambda x: np.log1p(np.exp(x)), lambda x: 1 / (np.exp(x) + 1)]
)
def test_the_gradient_of_an_exponential_that_overflows_is_a_number(function: Any):
    gradient = derived_gradient(function, ["x"], ["dy"])
    assert {float(gradient(np.float64(x), 1.0)) for x in (-1000.0, 1000.0)} <= {0.0, 1.0}
    second = derived_gradient(gradient, ["x", "dy"], ["ddx"])
    assert [float(second(np.float64(x), 1.0, 1.0)[0]) for x in (-1000.0, 1000.0)] == [0.0, 0.0]


def test_what_only_the_function_needs_is_not_in_its_gradient():
    def function(x):
        low = high = 2.0
        shift = np.exp(low)
        y = x * high
        return y + shift if x > low else y

    source = custom_op(function, elementwise=True).gradient_source
    assert derived_gradient(function, ["x"], ["dy"])(3.0, 1.0) == 2.0
    assert "shift" not in source
    assert "low = high = 2.0" in source


def reassigned(x):
    t = np.exp(x)
    x = x * 2.0
    below = 1.0 + t
    below = below + x * x
    return x / (1.0 + t) + 1.0 / below


def test_a_variable_that_changes_counts_as_it_was_where_it_was_read():
    gradient = derived_gradient(reassigned, ["x"], ["dy"])
    slope = (reassigned(0.3 + 1e-6) - reassigned(0.3 - 1e-6)) / 2e-6
    assert gradient(0.3, 1.0) == pytest.approx(slope, rel=1e-6)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("elementwise", [True, False])
def test_a_declared_backward_is_used_instead_also_after_one_was_derived(elementwise: bool):
    operator, x = custom_op(lambda x: x * x, name="squared", elementwise=elementwise), points()
    app.grad(operator(x), x)
    assert operator.gradient_source
    operator.backward(lambda x, dy: dy * 7)
    assert app.grad(operator(x), x)[0].numpy().tolist() == [[7] * 3] * 2
    assert operator.gradient_source == ""


def built(function: Any, declared: Any = None) -> tuple[static.Program, list[Any]]:
    operator = custom_op(function, elementwise=True, name="operator")
    if declared is not None:
        operator.backward(declared)
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x = static.data("x", [None, 4])
        x.stop_gradient = False
        y = operator(x)
        (first,) = static.gradients(y, x)
        fetched = [y, first]
        if declared is None:
            fetched += static.gradients(first, x)
    return program, fetched


@pytest.mark.slow
def test_both_engines_and_tensors_agree_with_finite_differences_and_all_is_inlined():
    operator = custom_op(choice, elementwise=True)
    program, fetched = built(choice)
    feed = {"x": np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4)}
    with as_python():
        assert gradcheck(operator, points(), atol=1e-6, rtol=1e-5)
        assert gradgradcheck(operator, points())
        reference = static.Executor(engine="reference").run(program, feed=feed, fetch_list=fetched)
    compiled = static.Executor(engine="compiled").run(program, feed=feed, fetch_list=fetched)
    for expected, actual in zip(reference, compiled, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    assert "Python call" not in explain(program, [v.name for v in fetched], source=False)


def test_it_compiles_to_the_same_code_as_a_gradient_written_by_hand():
    def by_hand(x, dy):
        return dy if x > 0 else dy * 0.1

    def leaky(x):
        return x if x > 0 else x * 0.1

    def instructions(program: static.Program, fetched: list[Any]) -> list[list[str]]:
        return [line.split()[1:] for line in explain(program, [v.name for v in fetched[:2]], False).splitlines()[2:]]

    assert instructions(*built(leaky)) == instructions(*built(leaky, by_hand))


# --- What cannot be derived ---


def lgamma(x):
    return math.lgamma(x)


def test_an_operator_without_a_gradient_runs_and_backward_is_an_error():
    operator = custom_op(lgamma, elementwise=True)
    y = operator(app.to_tensor([4.0], stop_gradient=False))
    assert y.item() == pytest.approx(math.lgamma(4.0))
    place = r"operator lgamma \(test_derived_gradient\.py:\d+\) has no backward, and none can be derived: "
    reason = r".*:\d+: `math.lgamma\(x\)` calls something without a known slope.*; write one with @lgamma\.backward"
    with pytest.raises(GradientError, match=place + reason):
        y.backward()
    with pytest.raises(UnderivableError, match=place + reason):
        _ = operator.gradient_source


def test_a_function_without_a_file_is_an_error():
    names: dict[str, Any] = {}
    exec("def unseen(x):\n    return x * x", names)
    with pytest.raises(UnderivableError, match="the source of unseen cannot be read"):
        _ = custom_op(names["unseen"], elementwise=True).gradient_source


def test_derived_gradients_are_written_to_files_as_gradients_of_their_operator():
    table = OperatorTable()
    first = REFERRED.gradient_operator
    numbers = [table.number_of(definition) for definition in (REFERRED, first, first.gradient_operator)]
    find = read_operators(table.entries, "file", [REFERRED], (), "read(")
    assert [find(number) for number in numbers] == [REFERRED, first, first.gradient_operator]


# --- Every kind of statement and expression ---

HEAD = """
import contextlib
import math
import numpy as np
from functools import wraps

TABLE = np.array([0.5, 1.5, 2.5])
CELL = [0.0]

def helper(u, v=2.0, *, w=1.0):
    return u * v + w

def turned(a, b):
    return a * math.cos(b), a * math.sin(b)

def passing(f):
    @wraps(f)
    def called(*args, **kwargs):
        return f(*args, **kwargs)
    return called

@passing
def wrapped(x):
    return x * x
"""

DERIVED = {
    "largest of three": "return max(x * x, 0.3, x) + min(x, x * 2, -0.1)",
    "unpacked without the input": "a, b = divmod(7, 2)\nreturn a * x + b",
    "unpacked over slopes": "a, b = x, x * x\ny = a * b\na, b = divmod(7, 2)\nreturn y + a * x + b",
    "chained comparison": "return x * x if 0.2 < x < 1.2 else -x",
    "annotated": "y: float = x * x\nreturn y",
    "annotated alone": "y: float\ny = x * x\nreturn y",
    "augmented": "y = x\ny *= y\ny **= 2\ny -= x\ny /= 2\nreturn y",
    "floor division": "y = x * x\ny //= 0.3\nreturn y + x",
    "modulo": "return (x * 3) % 0.7",
    "modulo by an input": "return 5.0 % x",
    "for and else": "for k in range(3):\n    x = x * 0.9\n    if x > 9:\n        break\nelse:\n    x = x * 5\nreturn x",
    "continue": "s = 0.0\nfor k in range(4):\n    if k == 2:\n        continue\n    s += x * x * k\nreturn s",
    "while and else": "k = 0\nwhile k < 3:\n    k += 1\n    x = x * 0.9\nelse:\n    x = x * 5\nreturn x",
    "early return in a loop": "for k in range(5):\n    x = x * 1.3\n    if x > 1.5:\n        return x * x\nreturn x",
    "and, or": "return (x > 1 and x * x) or x * 3",
    "conversions": "return float(x) * int(x + 3.5) + round(x) * x + bool(x) * x",
    "floor and kin": "return np.floor(x) * x + math.ceil(x) * x + math.trunc(x * 3) * x + np.rint(x * 2) * x",
    "a table": "return x * TABLE[int(abs(x))]",
    "a loop over an array": "s = 0.0\nfor c in TABLE:\n    s = s * x + c\nreturn s",
    "keywords": "return helper(x, w=x * x) + helper(u=x, v=x)",
    "pass": "if x > 0:\n    pass\nreturn x * x",
    "assert": "assert x < 99\nreturn x * x",
    "raise": "if x > 99:\n    raise ValueError('too large')\nreturn x * x",
    "not": "return x * x if not x > 1 else x",
    "unary plus": "return +x * -x",
    "where": "return np.where(x > 1, x * x, -x)",
    "swap": "a, b = x, x * x\na, b = b, a\nreturn a - b * 2",
    "a series": "term, s = 1.0, 1.0\nfor k in range(1, 6):\n    term *= x / k\n    s += term\nreturn s",
    "a recurrence": "a, b = 1.0, x\nfor n in range(1, 3):\n    a, b = b, (3 * n * x * b - n * a) / (n + 1)\nreturn b",
    "while and break": "k = 0\nwhile True:\n    k += 1\n    if k > 2:\n        break\n    x += math.tanh(x)\nreturn x",
    "a call of two results": "a, b = turned(x, x * x)\nreturn a + helper(b, w=3.0)",
    "names of slopes": "dx = x * x\ndout = math.exp(dx * 0.1)\nv1 = dout / (1 + dout)\nreturn v1",
    "functions of NumPy": "return np.maximum(x, 0.3) * np.arctan(x) + np.log1p(x * x) + np.hypot(x, 2.0)",
    "powers": "return (x * x + 1) ** 0.5 + 2.0**x + (x * x + 1) ** x + math.pow(x * x, 2)",
    "an input that is assigned to": "x = x * x\nx += math.sin(x)\nreturn x",
}

REFUSED: dict[str, str | tuple[str, str]] = {
    "walrus in if": (
        "if (t := x * x) > 1.0:\n    return t\nreturn x",
        "`.*:=.*` assigns inside an expression; write the assignment as a statement of its own",
    ),
    "walrus in while": "while (y := x * 0.5) > 0.2:\n    x = y\nreturn x",
    "walrus in a comprehension": "return max([(t := x * k) for k in (1.0, 2.0)]) + t",
    "walrus in a lambda": "f = lambda: (t := 3.0)\nreturn x * f()",
    "walrus in assert": "assert (t := x * x) < 99\nreturn t",
    "two targets": "a = b = x * x\nreturn a + b",
    "a constant for two targets": "a = x * x\nif x > 1:\n    a = b = 2.0\nreturn a",
    "nested targets": "(a, (b, c)) = x, (x, x)\nreturn a + b + c",
    "starred target": "a, *b = x, x\nreturn a",
    "subscript": ("CELL[0] = x * x\nreturn CELL[0]", r"`CELL\[0\] = x \* x` assigns to something other than a local"),
    "augmented subscript": "CELL[0] += x\nreturn CELL[0]",
    "attribute": "helper.kept = x\nreturn helper.kept",
    "list": "t = [x, x * x]\nreturn t[1]",
    "tuple": "t = (x, x * x)\nreturn t[1]",
    "dictionary": "t = {'a': x}\nreturn t['a']",
    "comprehension": "return sum([x * k for k in (1.0, 2.0)])",
    "generator": "return max(x * k for k in (1.0, 2.0))",
    "lambda": "f = lambda u: u * x\nreturn f(2.0)",
    "lambda of its own": "f = lambda u: u * u\nreturn f(x)",
    "nested function": "def inner(u):\n    return u * u\nreturn inner(x)",
    "nested class": "class C:\n    k = 2.0\nreturn x * C.k",
    "try": "try:\n    y = x * x\nexcept ValueError:\n    y = x\nreturn y",
    "with": "with contextlib.suppress(ValueError):\n    y = x * x\nreturn y",
    "match": "match x:\n    case 1.0:\n        return x\nreturn x * x",
    "global": "global KEPT\nKEPT = x * x\nreturn KEPT",
    "nonlocal import": "import math as m\nreturn m.sin(x)",
    "delete": "y = x\ndel y\nreturn x",
    "method": "return x.conjugate()",
    "attribute of a number": "return x.real",
    "matrix product": ("return x @ x", "`x @ x` works on bits or matrices"),
    "unknown function": (
        "y = x * x\nreturn math.lgamma(y)",
        r"`math.lgamma\(y\)` calls something without a known slope",
    ),
    "recursion": ("return f(x - 1) * x if x > 0 else 1.0", r"`f\(x - 1\)` is recursive"),
    "two results": ("return x, x", "returns 2 numbers, expected 1"),
    "bits": "return int(x) ^ 1 + (x | 1)",
    "invert": "return ~x",
    "a loop over inputs": (
        "s = 0.0\nfor k in range(int(x)):\n    s += k\nfor c in (x, x * x):\n    s += c\nreturn s",
        r"`\(x, x \* x\)` depends on an input, and a loop over it has no known slope",
    ),
    "a loop's own input": "for x in range(3):\n    pass\nreturn x * 1.0",
    "yield": "yield x * x",
    "await": "await x\nreturn x",
    "starred call": "return helper(*(x, x))",
    "keywords of a dictionary": "return helper(**{'u': x})",
    "formatted": "return float(f'{x}')",
    "a call alone": "helper(x)\nreturn x",
    "nothing": ("if x > 0:\n    return x\nreturn", "`return` returns nothing"),
    "a function of functions": "return (math.sin if x > 0 else math.cos)(x)",
    "slice": "return TABLE[: int(x)][0] * TABLE[x]",
    "set": "return max({x, x * x})",
}

"""Bodies of functions, some with the message of their error."""

FEEDS = ((0.37,), (1.13,), (2.61,))


def function_of(body: str, before: str = "def") -> Any:
    if "await" in body:
        before = "async def"
    return module_of_text(f"{HEAD}\n{before} f(x):\n{textwrap.indent(body, '    ')}\n").f


@pytest.mark.parametrize("what", DERIVED)
def test_first_and_second_derivatives_agree_with_finite_differences(what: str):
    function, compared = function_of(DERIVED[what]), 0
    gradient = derived_gradient(function, ["x"], ["arriving"])
    second = derived_gradient(gradient, ["x", "arriving"], ["again"])
    for at in FEEDS:
        expected, again = slope(function, at, 0), slope(lambda x: gradient(x, 1.0), at, 0)
        if expected is not None:
            assert gradient(*at, 1.0) == pytest.approx(expected, rel=1e-4, abs=1e-4), at
            compared += 1
        if again is not None:
            assert second(*at, 2.0, 1.0) == pytest.approx((2 * again, gradient(*at, 1.0)), rel=1e-4, abs=1e-4), at
    assert compared > 1


@pytest.mark.parametrize("what", REFUSED)
def test_a_statement_that_cannot_be_derived_is_an_error_that_names_its_line(what: str):
    body, message = REFUSED[what] if isinstance(REFUSED[what], tuple) else (REFUSED[what], "")
    with pytest.raises(UnderivableError, match=rf"^module_of_text_\d+\.py:\d+: .*{message}"):
        derived_gradient(function_of(body), ["x"], ["arriving"])


def test_the_tables_have_every_kind_of_node_of_python():
    refused = [each if isinstance(each, str) else each[0] for each in REFUSED.values()]
    text = "\n".join(textwrap.indent(body, "  ") for body in [*DERIVED.values(), *refused])
    tree = ast.parse(f"{HEAD}\nasync def f(x):\n{text}\n".replace("yield x * x", "await x\n  (yield x)"))
    met = {type(node).__name__ for node in ast.walk(tree)} | {"Yield", "Await"}
    kinds = {kind.__name__ for base in (ast.stmt, ast.expr) for kind in base.__subclasses__()}
    others = {"AsyncFor", "AsyncWith", "AsyncFunctionDef", "Nonlocal", "TryStar", "TypeAlias", "YieldFrom"}
    others |= {"DictComp", "SetComp", "TemplateStr", "Interpolation", "Num", "Str", "Bytes", "NameConstant", "Ellipsis"}
    assert kinds - met - others == set()


def test_a_function_with_any_number_of_arguments_is_an_error():
    module = module_of_text(HEAD)
    with pytest.raises(UnderivableError, match=r"wrapped takes 'x' among any number of arguments"):
        derived_gradient(module.wrapped, ["x"], ["arriving"])


def test_a_setting_may_be_assigned_a_value_of_an_input():
    text = "def f(x, k=2.0):\n    if x > 0:\n        k = k * x\n    return k * x\n"
    gradient = derived_gradient(module_of_text(text).f, ["x"], ["arriving"])
    assert (gradient(3.0, 1.0), gradient(-3.0, 1.0)) == (12.0, 2.0)


@pytest.mark.parametrize("default", ["float('nan')", "float('inf')", "np.float64(0.5)", "-0.0", "True", "(1, 2)"])
def test_settings_of_any_kind_keep_their_defaults(default: str):
    function = module_of_text(f"import numpy as np\ndef f(x, k={default}):\n    return x * x\n").f
    gradient = derived_gradient(function, ["x"], ["arriving"])
    assert repr(gradient.__defaults__) == repr(function.__defaults__)
    assert gradient(3.0, 1.0) == 6.0


@pytest.mark.parametrize(
    "body", ["math.sin(" * 60 + "x" + ")" * 60, " + ".join(["x * x"] * 300)], ids=["calls", "sums"]
)
def test_an_expression_nested_too_deeply_is_a_short_error(body: str, request: pytest.FixtureRequest):
    request.addfinalizer(partial(sys.setrecursionlimit, sys.getrecursionlimit()))
    sys.setrecursionlimit(len(inspect.stack(0)) + 300)
    function = module_of_text(f"{HEAD}\ndef f(x):\n    y = x\n    return {body}\n").f
    with pytest.raises(UnderivableError, match=r"\d+: an expression is nested too deeply \(\d+ levels\)") as caught:
        derived_gradient(derived_gradient(function, ["x"], ["one"]), ["x", "one"], ["two"])
    assert len("".join(traceback.format_exception(caught.value)).splitlines()) < 100
