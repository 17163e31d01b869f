"""What the loops of written kernels compute in vectors."""

from __future__ import annotations

import math
import platform
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from as_python import uncompiled
from numba import njit

import app
from app.bridge.out.description import spec_of_example
from app.bridge.out.translation import TORCH
from app.bridge.out.vectors import TEMPLATE
from app.bridge.out.writing import filled, leaving, loaded
from app.custom.shelf.ema import ema
from app.custom.shelf.softmax import softmax

__all__ = ["uncompiled"]

pytestmark = pytest.mark.slow

IMPORTS = "import math\nimport numpy as np\nfrom numba import njit, types\nfrom numba.extending import overload\n"
FUNCTIONS = ("exp", "log", "tanh")
EXTREMES = [0.0, 5e-324, 2.2250738585072014e-308, 1e-45, 88.8, 103.9, 709.782712893384, 745.14, 1e308, np.inf, np.nan]


@pytest.fixture(scope="module")
def functions() -> dict[str, Any]:
    """Loops over arrays by the name of their function."""
    module = loaded(IMPORTS + filled(TEMPLATE, ["power", *FUNCTIONS]), "vectors")
    return {name: over_elements(getattr(module, f"_{name}")) for name in FUNCTIONS}


def over_elements(function: Any) -> Any:
    @njit
    def loop(x):
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = function(x[i])
        return y

    return loop


def kernel(operator: Any, *examples: Any) -> ModuleType:
    one = leaving(operator, list(map(spec_of_example, examples)), TORCH, ())
    return loaded(f"{IMPORTS}\n{one.constants}\n{one.functions}\n", "kernel")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_function_is_that_of_numpy_to_an_ulp_at_all_kinds_of_numbers(functions: Any, name: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    if dtype == "float32":
        x = np.arange(0, 1 << 32, 19_997, dtype=np.uint32).view(np.float32)
    else:
        bits = random.integers(0, 1 << 64, 50_000, dtype=np.uint64).view(np.float64)
        x = np.concatenate([bits, random.uniform(-750, 750, 50_000), random.normal(1, 0.5, 50_000)])
    with np.errstate(all="ignore"):
        x = np.concatenate([x, np.array(EXTREMES, dtype), -np.array(EXTREMES, dtype)])
        exact = getattr(np, name)(x.astype(np.longdouble))
        expected = exact.astype(dtype)
        actual = functions[name](x)
        finite = np.isfinite(expected) & np.isfinite(actual)
        distance = np.abs(actual.astype(np.longdouble) - exact)[finite] / np.spacing(np.abs(expected[finite]))
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    np.testing.assert_array_equal(np.signbit(actual[finite]), np.signbit(expected[finite]))
    assert distance.max() < (0.51 if dtype == "float32" else 1.5)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads instructions of x86")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_loop_over_a_function_is_made_of_vectors(functions: Any, name: str) -> None:
    functions[name](np.ones(4, np.float32))
    assert "mulpd" in next(iter(functions[name].inspect_asm().values()))


def test_kernels_call_them_and_add_several_terms_at_once(uncompiled: None) -> None:
    one = leaving(softmax, [spec_of_example(np.ones((4, 6)))], TORCH, ())
    assert "            y[i, j] = _exp(x[i, j] - largest)\n" in one.functions
    assert "            total = _plus(total, y[i, j])\n" in one.functions


def test_kernels_without_them_stay_as_they_are(uncompiled: None) -> None:
    assert "_plus" not in leaving(ema, [spec_of_example(np.ones((4, 6)))], TORCH, ()).functions


def test_only_sums_of_which_a_loop_reads_nothing_else_are_added_in_another_order(uncompiled: None) -> None:
    @app.custom_op
    @njit
    def summed(x):
        y = np.empty(x.shape[0], x.dtype)
        for i in range(x.shape[0]):
            total = 0.0
            lost = 0.0
            squares = 0.0
            for j in range(x.shape[1]):
                term = math.exp(x[i, j]) - lost
                more = total + term
                lost = (more - total) - term
                total = more
                squares += (x[i, j] - 1) * x[i, j]  # with a comment
            y[i] = total + 0 * squares
        return y

    @summed.backward
    @njit
    def summed_grad(x, dy):
        dx = np.empty_like(x)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                dx[i, j] = dy[i] * math.exp(x[i, j])
        return dx

    module = kernel(summed, np.ones((2, 3)))
    x = np.random.default_rng(0).uniform(-30, 30, (3, 20_000))
    sums = module._forward(x)
    np.testing.assert_allclose(sums, [math.fsum(np.exp(row)) for row in x], rtol=4e-16)
    text = leaving(summed, [spec_of_example(x)], TORCH, ()).functions
    assert "squares = _plus(squares, (x[i, j] - 1) * x[i, j])  # with a comment\n" in text
    assert "= _plus(total" not in text


def test_a_kernel_has_conditional_expressions_functions_with_defaults_and_names_like_those_here() -> None:
    def _exp(x):
        return 2 * x

    compiled = njit(_exp)

    @njit
    def scaled(x, by=0.5, most=math.inf):
        return min(x * by, most)

    @app.custom_op
    @njit
    def running(x):
        y = np.empty_like(x)
        total = 0.0
        for i in range(x.shape[0]):
            total += compiled(x[i]) if x[i] > 0 else math.exp(x[i]) - 1
            y[i] = total + scaled(x[i]) + scaled(x[i], 3.0) + scaled(x[i], most=1.0)
        return y

    x = np.linspace(-4, 4, 9)
    expected = np.cumsum(np.where(x > 0, 2 * x, np.exp(x) - 1)) + 0.5 * x + 3 * x + np.minimum(0.5 * x, 1)
    np.testing.assert_allclose(kernel(running, x)._forward(x), expected, rtol=1e-14)
