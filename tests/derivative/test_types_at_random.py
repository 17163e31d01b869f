"""Derived gradients of random functions that weigh by integers and truth values: the weights are those of NumPy.

`OPSMITH_EXAMPLES=600 pytest tests/derivative/test_types_at_random.py` tries as many functions.
"""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from modules_of_text import module_of_text

from app.derivative.arrays import derive
from app.errors import AppError

EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", "9"))
REDUCTIONS = ["sum", "mean", "max", "min", "prod", "argmax"]
MATRICES = [
    "({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / 2)", "({0} // 2)", "({0} % 3)", "({0} * {2})", "({0} > {1})",
    "({0} == 2)", "np.where({0} > 1, {1}, 0)", "np.where({0} > 1, 0.5, {1})", "np.abs({0})", "np.square({0})",
    "np.maximum({0}, {1})", "{0}[::-1]", "({0} * {0}.{3}(axis={4}, keepdims=True))", "({0} * {0}.{3}(axis={4})[0])",
    "({0} * {2}.{3}(keepdims=True))", "np.outer({0}[:, 0], {2})",
]  # fmt: skip
VECTORS = ["{0}.{3}(axis=0)", "{0}[1]", "({2} * {0}[0])", "({2} / 2)", "({2} > 1)", "{2}[::-1]", "({2} + {2}.{3}())"]
TYPES = ["np.int64", "np.float64", "np.bool_"]


class Writer:
    """Writes functions of x, by which integers p, q and v are multiplied at the end."""

    def __init__(self, seed: int):
        self.random = Random(seed)

    def matrix(self, depth: int) -> str:
        return self._filled(MATRICES, depth) if depth else self.random.choice(["p", "(p > 3)", "q", "(q > 1)"])

    def vector(self, depth: int) -> str:
        return self._filled(VECTORS, depth) if depth else self.random.choice(["v", "(v > 0)", "p[0]"])

    def _filled(self, forms: list[str], depth: int) -> str:
        parts = self.matrix(depth - 1), self.matrix(0), self.vector(depth - 1)
        return self.random.choice(forms).format(*parts, self.random.choice(REDUCTIONS), self.random.choice([0, 1, -1]))

    def function(self) -> str:
        lines = [f"a = {self.matrix(2)}", f"b = {self.vector(2)}"]
        if self.random.random() < 0.5:
            operator = self.random.choice("+-*")
            lines += [f"c = np.zeros(x.shape, {self.random.choice(TYPES)})", "c[:] = a", f"a = c {operator} b"]
        return "\n    ".join(["import numpy as np\ndef f(x, p, q, v):", *lines, "return x * (a * b)"]) + "\n"


def check(seed: int) -> bool:
    """Whether the gradient along x is what x is multiplied by; False where it was refused."""
    random = np.random.default_rng(seed)
    text, x = Writer(seed).function(), np.ones((3, 4))
    integers = [random.integers(0, 7, (3, 4)), random.integers(-3, 4, (3, 4)), random.integers(-3, 4, 4)]
    function = module_of_text(text).f
    try:
        expected = function(x, *integers)
        gradient = derive(function, x, *integers).function
    except (TypeError, ValueError, AppError):  # NumPy refuses some, too
        return False
    np.testing.assert_allclose(gradient(x, *integers, x), expected, rtol=1e-12, atol=1e-9, err_msg=text)
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.slow
def test_weights_of_integers_and_truth_values_are_those_of_numpy():
    assert sum(check(seed) for seed in range(EXAMPLES)) > EXAMPLES // 3
