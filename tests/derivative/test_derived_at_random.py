"""Derived gradients, and theirs, of functions made at random: locals, branches, loops that are left early, calls.

`OPSMITH_EXAMPLES=600 pytest tests/derivative/test_derived_at_random.py` tries as many functions.
"""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from modules_of_text import module_of_text, slope

from app.derivative.making import derived_gradient

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("OPSMITH_EXAMPLES", "4"))
GROUPS = 2
HEAD = (
    "import math\nimport numpy as np\n\ndef helper(u, v=1.5):\n    return math.tanh(u) * v if u > v else u * 0.5 + v\n"
)
NAMES = ("x", "y", "a", "b")
POINTS = ((0.31, -0.72), (1.17, 0.43), (-0.83, 1.61))
LEAVES = [*NAMES, "0.5", "1.3", "2"]
WHOLE = ["({0} + {1})", "({0} - {1})", "({0} * {1})", "math.sin({0})", "np.tanh({0})", "helper({0}, v={1})", "-({0})"]
WHOLE += ["({0} if {2} else {1})", "max({0}, {1})", "np.minimum({0}, {1})", "({0} / (1.5 + ({1}) ** 2))"]
WHOLE += ["np.exp(-(({0}) ** 2))", "math.atan({0})", "math.sqrt(2.0 + ({0}) ** 2)"]
TESTS = ["{0} > {1}", "{0} < {1} < {2}", "not {0} > {1}", "{0} > {1} and {2} < 1.0", "{0} > {1} or {2} < 0.2"]
TESTS += ["(1.0 if {0} > {1} else -1.0) > {2}", "helper({0}) > {1}"]


class Writer:
    """Writes functions of x and y."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.loops = 0

    def expression(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice(LEAVES)
        one, two = self.expression(depth - 1), self.expression(depth - 1)
        return self.random.choice(WHOLE).format(one, two, f"{self.random.choice(NAMES)} > {two}")

    def test(self) -> str:
        return self.random.choice(TESTS).format(*(self.expression(self.random.randint(0, 1)) for _ in range(3)))

    def block(self, depth: int, in_loop: bool) -> list[str]:
        lines = [line for _ in range(self.random.randint(1, 2)) for line in self.statement(depth, in_loop)]
        return ["    " + line for line in lines]

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        kind = self.random.randint(0, 7 if depth else 2)
        target = self.random.choice(("x", "a", "b"))
        if kind == 0:
            return [f"{target} = {self.expression(2)}"]
        if kind == 1:
            return [f"{target} {self.random.choice('+-*')}= 0.5 * ({self.expression(1)})"]
        if kind == 2:
            return [f"t = {self.expression(1)}", f"a, b = t, {self.expression(1)}"]
        if kind in (3, 4):
            lines = [f"if {self.test()}:", *self.block(depth - 1, in_loop)]
            leave = [f"return {self.expression(1)}", "break", "continue"]
            if self.random.random() < 0.4:
                lines.append("    " + self.random.choice(leave if in_loop else leave[:1]))
            if self.random.random() < 0.5:
                lines += [f"elif {self.test()}:", *self.block(depth - 1, in_loop)]
            return [*lines, "else:", *self.block(depth - 1, in_loop)]
        if kind == 5:
            lines = [f"for _ in range({self.random.randint(1, 3)}):", *self.block(depth - 1, True)]
        else:
            step, bound = self.random.choice([("a * 0.5", 0.3), ("abs(x) * 0.6", 0.2), ("(x * x + 0.1) * 0.4", 0.1)])
            self.loops += 1
            variable, count = self.random.choice(["y", "t", "a"]), f"n{self.loops}"
            lines = [f"{count} = 0", f"{variable} = {step}", f"while {variable} > {bound}:", f"    {count} += 1"]
            lines += [f"    {variable} = {step}", f"    if {count} > 3:", "        break", *self.block(depth - 1, True)]
        if self.random.random() < 0.5:
            lines += ["else:", *self.block(depth - 1, False)]
        return lines

    def function(self) -> str:
        lines = ["a = 0.5", "b, t, u = x * y, y, x", *(line[4:] for line in self.block(2, False))]
        lines = [*lines, *(line[4:] for line in self.block(2, False)), f"return {self.expression(1)} + t * u"]
        return "\n    ".join(["def f(x, y):", *lines]) + "\n"


def check(seed: int) -> int:
    """Compare the slopes of one function, and of its gradient, with finite differences; gives how many there were."""
    function = module_of_text(HEAD + Writer(seed).function()).f
    gradient = derived_gradient(function, ["x", "y"], ["arriving"])
    second = derived_gradient(gradient, ["x", "y", "arriving"], ["gx", "gy"])
    count = 0
    for at in POINTS:
        for place in (0, 1):
            for steps, derived in (
                (function, lambda *at: gradient(*at, 1.0)),
                (lambda x, y: gradient(x, y, 1.0)[0], lambda *at: second(*at, 1.0, 1.0, 0.0)),
            ):
                expected = slope(steps, at, place)
                if expected is not None:
                    assert derived(*at)[place] == pytest.approx(expected, rel=1e-3, abs=1e-3), (seed, at)
                    count += 1
    return count


@pytest.mark.parametrize("group", range(GROUPS))
def test_derivatives_of_random_functions_agree_with_finite_differences(group: int):
    with np.errstate(all="ignore"):
        counts = [check(seed) for seed in range(group, EXAMPLES, GROUPS)]
    assert sum(counts) > 3 * len(counts)
