"""Derived gradients, and theirs, of functions made at random: locals, branches, loops, calls, several inputs."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from app.custom.derivative.making import derived_gradient

HEAD = """import math
import numpy as np

def helper(u, v):
    if u > v:
        return u * v + 0.3
    w = math.tanh(u)
    return w - v
"""
LOCALS = ("a", "b", "c")
NAMES = ("x", "y", *LOCALS)
TEMPLATES = ["({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / (1.5 + {1} ** 2))", "-{0}", "np.exp(-({0}) ** 2)"]
TEMPLATES += ["math.sin({0})", "np.tanh({0})", "math.atan({0})", "math.sqrt(2.0 + ({0}) ** 2)", "helper({0}, {1})"]
TEMPLATES += ["({0} if {1} > {2} else {3})", "max({0}, {1})", "np.minimum({0}, {1})"]


class Writer:
    """Writes functions of x and y."""

    def __init__(self, seed: int):
        self.random = Random(seed)

    def expression(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice([*NAMES, "0.5", "2", "1.3"])
        parts = [self.expression(depth - 1) for _ in range(4)]
        return self.random.choice(TEMPLATES).format(*parts)

    def block(self, depth: int, indent: str) -> list[str]:
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines += [indent + line for line in self.statement(depth if depth else 0)]
        return lines

    def statement(self, depth: int) -> list[str]:
        kind = self.random.randint(0, 5 if depth else 2)
        target, other = self.random.sample(LOCALS, 2)
        if kind == 0:
            return [f"{self.random.choice([target, 'x'])} = {self.expression(2)}"]
        if kind == 1:
            return [f"{target} {self.random.choice('+-*')}= {self.expression(1)}"]
        if kind == 2:
            return [f"{target}, {other} = {self.expression(1)}, {self.expression(1)}"]
        test = f"{self.expression(1)} > {self.expression(1)}"
        if kind == 3:
            return [f"if {test}:", *self.block(depth - 1, "    "), "else:", *self.block(depth - 1, "    ")]
        if kind == 4:
            return [f"if {test}:", *self.block(depth - 1, "    "), f"    return {self.expression(1)}"]
        leave = [f"    if {test}:", f"        {self.random.choice(['break', 'continue'])}"]
        return [f"for _ in range({self.random.randint(1, 3)}):", *self.block(depth - 1, "    "), *leave]

    def function(self, name: str) -> str:
        start = ["    a = 0.5", "    b, c = y, x * y"]
        return "\n".join([f"def {name}(x, y):", *start, *self.block(2, "    "), f"    return {self.expression(2)}", ""])


def slope(function: Callable[..., float], at: tuple[float, float], place: int) -> float | None:
    """The slope along one input; None where two steps do not agree on one, as beside a kink."""
    found = []
    for step in (1e-6, 1e-7):
        ahead, behind = list(at), list(at)
        ahead[place] += step
        behind[place] -= step
        found.append((function(*ahead) - function(*behind)) / (2 * step))
    near = math.isclose(*found, rel_tol=1e-5, abs_tol=1e-5)
    return found[0] if near and abs(found[0]) < 1e6 else None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 20))])
def test_functions_made_at_random(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, count, compared = tmp_path / f"random_{seed}.py", 25, 0
    writer = Writer(seed)
    file.write_text("\n".join([HEAD, *(writer.function(f"f{i}") for i in range(count))]))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module: Any = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    for i in range(count):
        function = getattr(module, f"f{i}")
        gradient = derived_gradient(function, ["x", "y"], ["arriving"])
        second = derived_gradient(gradient, ["x", "y", "arriving"], ["gx", "gy"])
        for at in [(0.31, -0.72), (1.17, 0.43), (-0.83, 1.61)]:
            first = gradient(*at, 1.0)
            of_first = second(*at, 1.0, 1.0, 0.0)
            for place in (0, 1):
                for found, expected in (
                    (first[place], slope(function, at, place)),
                    (of_first[place], slope(lambda x, y, g=gradient: g(x, y, 1.0)[0], at, place)),
                ):
                    if expected is not None:
                        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4), (function, at)
                        compared += 1
    assert compared > 200
