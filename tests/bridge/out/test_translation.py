"""Functions of single numbers as tensor expressions: each is compared with itself, called for each number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text

from app.bridge.out.names import Names
from app.bridge.out.translation import _FUNCTIONS, _PAIRS, TORCH, Translator, UntranslatableError
from app.bridge.out.writing import loaded

torch = pytest.importorskip("torch")

AT = np.array([-math.inf, -1000.0, -88.8, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.5, 800.0, math.inf, math.nan])
SCALE = 1.5


def translated(function: Callable[..., Any], tensors: list[str], numbers: list[str]) -> tuple[Any, str]:
    translator = Translator(TORCH, Names())
    translator.add(function, "translated", tensors, numbers)
    result = translator.translated
    constants = "\n".join(f"{name} = {value!r}" for name, value in result.constants.items())
    text = f"import math\nimport torch\n{constants}\n{result.source}\n"
    return loaded(text, "translated").translated, text


def compare(function: Callable[..., Any], inputs: int = 1, rtol: float = 1e-12, **settings: Any) -> str:
    """Compare on all pairs of numbers, in both types; gives the source."""
    names = list(function.__code__.co_varnames[:inputs])
    tensor_function, text = translated(function, names, list(settings))
    at = np.meshgrid(*[AT] * inputs)
    results, places = [], []
    for place, each in enumerate(zip(*(a.flat for a in at), strict=True)):
        try:
            with np.errstate(all="ignore"):
                results.append(function(*map(np.float64, each), **settings))
        except (ValueError, OverflowError):  # where math raises an error, tensors have NaN or infinity
            continue
        places.append(place)
    assert places
    expected = np.array(results, dtype=np.float64)
    for dtype in (torch.float64, torch.float32):
        tensors = [torch.from_numpy(a.reshape(-1)).to(dtype) for a in at]
        actual = tensor_function(*tensors, **settings)
        actual = torch.stack(actual, -1) if isinstance(actual, tuple) else actual
        assert actual.dtype == dtype
        if dtype == torch.float64:
            np.testing.assert_allclose(actual.numpy()[places], expected, rtol=rtol)
    return text


def sigmoid(x):
    return 1 / (1 + np.exp(-x)) if x > 0 else np.exp(x) / (1 + np.exp(x))


def two(x, scale=2.0):
    if x > 1:
        return x, scale
    return -x, scale * x


def straight(x):
    y = x * x
    y += 1
    a, b = y, x
    return a - b * SCALE


def branches(x, slope):
    y = 0.1
    if x > 1 and not x > 100:
        y = x
    elif x < -1 or x != x:
        z = x * 2
        y = z + 1
    return y * slope


def returns(x, low):
    if x < low:
        return low
    if x > 2:
        x = x - 1
        return x * x
    return x


def flags(x):
    positive = x > 0
    return 0.1 * positive - (x > 1) + float(x >= 0.5)


def by_setting(x, mode):
    y = x * 10 if mode == "steep" else x
    return y if mode != "none" else x * 0.0


def number_by_setting(x, on):
    y, flag = x if on else 0.5, x > 0 if on else False
    return math.tanh(y) + flag


def of_settings(x, alpha):
    return x * math.exp(alpha) + max(alpha, 0.5) + np.sqrt(alpha) + math.pi


def series(x, terms):
    total = 0.0
    for k in range(1, terms):
        total += np.arctan(x) ** k / k
    return total


def widened(x):
    flag = 0.0
    for k in range(3):
        if x > k:
            flag = k
    return flag


def extremes(x, y):
    return max(x * 1.0, y, 0.0) + min(x, y) + np.maximum(x, 0.5) + np.minimum(1.0, y) + np.fmax(x, y) + np.fmin(x, 1)


def helpers(x):
    low, high = two(x)
    return sigmoid(x) * low + high + sigmoid(0.5) + two(x, scale=x)[1] if False else sigmoid(x) * low + high


def constant(x):
    return 1.0


def chained(x, y):
    return x if -1 < x <= y else y


def like_parameters(x):
    x = x + 1
    if x > 0:
        x = 0.3
    return x


@pytest.mark.parametrize(
    ("function", "inputs", "settings"),
    [
        (sigmoid, 1, {}), (two, 1, {"scale": 0.3}), (straight, 1, {}), (branches, 1, {"slope": 0.3}),
        (returns, 1, {"low": 0.1}), (flags, 1, {}), (by_setting, 1, {"mode": "steep"}), (by_setting, 1, {"mode": "no"}),
        (number_by_setting, 1, {"on": False}), (number_by_setting, 1, {"on": True}),
        (of_settings, 1, {"alpha": 0.7}), (series, 1, {"terms": 4}), (widened, 1, {}), (extremes, 2, {}),
        (constant, 1, {}), (chained, 2, {}), (like_parameters, 1, {}),
    ],
)  # fmt: skip
def test_a_translated_function_computes_the_same(function: Any, inputs: int, settings: dict[str, Any]) -> None:
    compare(function, inputs, **settings)


@pytest.mark.parametrize("function", _FUNCTIONS, ids=lambda f: f"{getattr(f, '__module__', '')}.{f.__name__}")
def test_each_known_function_is_that_of_numpy_at_all_kinds_of_numbers(function: Any) -> None:
    row = _FUNCTIONS[function]
    text = "def one(x, y):\n    return f(x, y) * 1\n" if row in _PAIRS else "def one(x):\n    return f(x) * 1\n"
    one = module_of_text(text, f=function).one
    compare(one, 2 if row in _PAIRS else 1)


def test_conditions_on_nan_and_infinity_are_comparisons_which_inductor_vectorises() -> None:
    def bounded(x):
        if math.isinf(x) or np.isnan(x * 2):
            return 0.0
        return x

    text = compare(bounded)
    assert "torch.abs(x) == math.inf" in text
    assert "torch.is" not in text


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("x if x > 0 else 0.0", "torch.fmax(x.new_full((), 0.0), x)"),
        ("x if -0.5 < x else -0.5", "torch.fmax(x.new_full((), -0.5), x)"),
        ("x if x < 0.1 else 0.1", "torch.fmin(x.new_full((), 0.1), x)"),
        ("0.1 if x > 0.1 else x", "torch.clamp(x, max=0.1)"),
        ("max(x, -0.5)", "torch.clamp(x, min=-0.5)"),
        ("max(0.0, x)", "torch.fmax(x.new_full((), 0.0), x)"),
        ("x if x > 0 else -0.0", "torch.where"),
        ("x if x > 0 else 1.0", "torch.where"),
    ],
)
def test_limits_are_one_function_that_takes_nan_and_zeros_as_python_does(text: str, function: str) -> None:
    one = module_of_text(f"def one(x):\n    return {text}\n").one
    for source in (one, module_of_text(f"def one(x):\n    y = {text}\n    return y * 1\n").one):
        assert function in compare(source)
    signs = [translated(one, ["x"], [])[0](torch.tensor([zero])).signbit().item() for zero in (0.0, -0.0)]
    assert signs == [math.copysign(1, one(zero)) < 0 for zero in (0.0, -0.0)]


def test_a_power_of_e_is_compared_with_infinity_as_it_is() -> None:
    def bounded(x):
        power = math.exp(x)
        for _ in range(2):
            x = 1.0 if np.isinf(x) else np.exp(x)
        return x if np.isinf(power) else x - 1

    text = compare(bounded)
    assert "torch.exp(x) == math.inf" in text or "power == math.inf" in text
    assert "torch.abs(x) == math.inf" in text


def test_one_divided_by_a_tensor_is_one_operation() -> None:
    def inverse(x):
        return 1 / x - 1.0 / (x * x)

    assert "return torch.reciprocal(x) - torch.reciprocal(x * x)" in compare(inverse)


def test_a_limit_may_be_returned_from_a_branch() -> None:
    def relu(x):
        if x > 0:
            return x
        return 0.0

    assert compare(relu).endswith("def translated(x):\n    return torch.fmax(x.new_full((), 0.0), x)\n")


def test_statements_keep_their_names_and_lines() -> None:
    assert translated(straight, ["x"], [])[1].endswith(
        "def translated(x):\n    y = x * x\n    y = y + 1\n    a, b = y, x\n    return a - b * SCALE\n"
    )


def test_a_branch_that_returns_is_chosen_in_one_expression() -> None:
    assert translated(sigmoid, ["x"], [])[1].count("torch.where") == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("while x > 1:\n        x = x / 2\n    return x", "goes on as long as each number needs"),
        ("for k in range(3):\n        if x > k:\n            break\n    return x", "leaves a loop"),
        ("for k in range(int(x)):\n        x = x + 1\n    return x", "depends on the input"),
        ("return [x][0]", "has no counterpart"),
        ("return np.float32(x) * 2", "has no counterpart"),
        ("return x if unknown > 0 else 1", "unknown"),
        ("torch = x\n    return torch", "called torch like a module"),
        ("y = x\n    return x @ y", "bits or matrices"),
    ],
)
def test_what_tensors_cannot_compute_is_refused_with_its_line(body: str, message: str) -> None:
    function = module_of_text(f"def f(x):\n    {body}\n", np=np).f
    with pytest.raises(UntranslatableError) as raised:
        translated(function, ["x"], [])
    assert message in str(raised.value)
    assert ".py:" in str(raised.value)


def test_two_constants_of_one_name_get_two_names() -> None:
    inner = module_of_text("SCALE = 7.0\ndef inner(x):\n    return x * SCALE\n").inner
    outer = module_of_text("SCALE = 2.0\ndef outer(x):\n    return inner(x) + SCALE\n", inner=inner).outer
    assert translated(outer, ["x"], [])[0](torch.tensor([1.0], dtype=torch.float64)).tolist() == [9.0]
