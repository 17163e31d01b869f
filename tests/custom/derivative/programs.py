"""Writes functions on arrays at random: loops in both directions, branches, indices that wrap around, buffers, rows."""

from __future__ import annotations

from random import Random

HEAD = """import math

import numpy as np


def helper(u, v=0.5):
    if u > v:
        return math.tanh(u) * v
    return u * 0.5 + v


def scaled(row, by):
    total = 0.0
    for value in row:
        total += value * by
    return np.sin(total)


"""
RANGES = ("3", "1, 3", "2, -1, -1", "2, 0, -1", "0, 3, 2", "2", "1", "b[0] + 1", "n", "n - 1, -1, -1", "1, n")


class Program:
    """One function `f(x, w, b)` of a vector and a matrix of three, and integers from 0 to 2."""

    def __init__(self, seed: int, blocks: int = 4, depth: int = 3):
        self.random = Random(seed)
        self.blocks, self.depth = blocks, depth
        self.loops: list[str] = []
        self.numbers = ["a", "c", "e"]
        self.arrays = {"y": 2, "t": 1, "z": 1}
        self.count = 0
        self.whole = self.random.random() < 0.5

    def text(self) -> str:
        random = self.random
        makers = [
            "np.zeros((3, 3))",
            "np.ones((3, 3))",
            "w.copy()",
            "w * x",
            "np.full((3, 3), 0.3)",
            "np.empty((3, 3))",
        ]
        lines = ["n = x.shape[0]", f"y = {random.choice(makers)}", "t = x * 0.5", "z = np.empty(3)", "k = b[1]"]
        if "empty" in lines[1]:
            lines += ["for i in range(3):", "    for j in range(3):", "        y[i, j] = 0.2 * x[i] + w[j, i]"]
        lines += ["for i in range(3):", "    z[i] = 0.4 * x[i]", "a = 0.3", "c = x[0] * x[1]", "e = 1.0"]
        for _ in range(random.randint(min(2, self.blocks), self.blocks)):
            lines += self.block(0)
        lines += ["y[0, 0] += a * c + e + t[1] + z[2]"]
        lines += [random.choice(["return y", "return y, t", "return y * z", "return y, a + e"])]
        return HEAD + "def f(x, w, b):\n" + "\n".join("    " + line for line in lines) + "\n"

    def index(self) -> str:
        options = ["0", "1", "2", "-1", "b[0]", "b[2]", "k", "n - 1"]
        for variable in self.loops:
            options += [variable] * 4 + [
                f"{variable} - 1",
                f"2 - {variable}",
                f"b[{variable}]",
                f"({variable} + 1) % 3",
            ]
        return self.random.choice(options)

    def element(self, array: str) -> str:
        rank = 2 if array == "w" else 1 if array == "x" else self.arrays[array]
        return f"{array}[{', '.join(self.index() for _ in range(rank))}]"

    def expression(self, depth: int = 0) -> str:
        random = self.random
        kinds = ["number", "number", "x", "w", "array", "array", "array"]
        if depth < 2:
            kinds += ["sin", "times", "plus", "minus", "over", "max", "if", "helper", "square"]
        kind = random.choice(kinds)
        one, two = (self.expression(depth + 1), self.expression(depth + 1)) if depth < 2 else ("a", "c")
        return {
            "number": lambda: random.choice([*self.numbers, "0.7"]),
            "x": lambda: self.element("x"),
            "w": lambda: self.element("w"),
            "array": lambda: self.element(random.choice(list(self.arrays))),
            "sin": lambda: f"np.sin({one})",
            "times": lambda: f"({one} * {two})",
            "plus": lambda: f"({one} + {two})",
            "minus": lambda: f"({one} - {two})",
            "over": lambda: f"({one} / (1.5 + {two} ** 2))",
            "max": lambda: f"max({one}, {two})",
            "if": lambda: f"({one} if {two} > 0.4 else {self.expression(depth + 1)})",
            "helper": lambda: f"helper({one}, {two})",
            "square": lambda: f"({one}) ** 2",
        }[kind]()

    def value(self) -> str:
        return f"0.7 * np.sin({self.expression()})"

    def block(self, depth: int) -> list[str]:
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth)]

    def inner(self, depth: int) -> list[str]:
        return ["    " + line for line in self.block(depth + 1)]

    def statement(self, depth: int) -> list[str]:
        random = self.random
        kinds = ["set", "add", "element", "element", "update", "buffer", "integer", "swap", "best"]
        if depth < self.depth:
            kinds += ["if", "for", "for", "for", "while", "row"]
        if self.whole:
            kinds += ["section", "whole", "reduce", "copy", "rebind"]
        return list(getattr(self, "_" + random.choice(kinds))(depth))

    def _set(self, _: int) -> list[str]:
        return [f"{self.random.choice(self.numbers)} = {self.value()}"]

    def _add(self, _: int) -> list[str]:
        return [f"{self.random.choice(self.numbers)} {self.random.choice('+-*')}= {self.value()}"]

    def _swap(self, _: int) -> list[str]:
        one, two = self.random.sample(self.numbers, 2)
        return [f"{one}, {two} = {two}, {one}"]

    def _element(self, _: int) -> list[str]:
        return [f"{self.element(self.random.choice(list(self.arrays)))} = {self.value()}"]

    def _update(self, _: int) -> list[str]:
        target = self.element(self.random.choice(list(self.arrays)))
        return [f"{target} {self.random.choice('+-*')}= {self.value()}"]

    def _integer(self, _: int) -> list[str]:
        return [f"k = {self.random.choice([*self.loops, 'b[0]', '1', 'b[k]'])}"]

    def _buffer(self, _: int) -> list[str]:
        """A buffer that is filled, changed and used."""
        v, text = f"v{self.count}", self.random.choice(["t", "z"])
        self.count += 1
        lines = [f"for {v} in range(3):", f"    {text}[{v}] = np.cos({self.expression(1)} + x[{v}])"]
        if self.random.random() < 0.6:
            lines += [f"for {v} in range(1, 3):", f"    {text}[{v}] = {text}[{v}] * {text}[{v} - 1]"]
        return [*lines, f"for {v} in range(3):", f"    a += 0.3 * {text}[{v}] * {text}[{v}]"]

    def _best(self, depth: int) -> list[str]:
        """A search for the largest or the smallest value."""
        v, best = f"v{self.count}", self.random.choice(self.numbers)
        self.count += 1
        self.loops.append(v)
        value = self.random.choice([self.element("x"), self.element("w"), self.element("t"), self.expression(1)])
        self.loops.pop()
        step = self.random.choice(
            [
                f"if {value} > {best}:\n    {best} = {value}",
                f"{best} = max({best}, {value})",
                f"{best} = min({value}, {best})",
            ]
        )
        start = [self.random.choice([f"{best} = x[0]", f"{best} = -1.0"])] if self.random.random() < 0.7 else []
        more = [f"    k = {v}"] if self.random.random() < 0.2 else []
        return [*start, f"for {v} in range(3):", *("    " + line for line in step.split("\n")), *more]

    def _if(self, depth: int) -> list[str]:
        lines = [f"if {self.expression(1)} > 0.3:", *self.inner(depth)]
        if self.random.random() < 0.5:
            lines += ["else:", *self.inner(depth)]
        return lines

    def _for(self, depth: int) -> list[str]:
        v = f"i{len(self.loops)}"
        spans = [*RANGES, *(f"{each}, 3" for each in self.loops), *(f"{each} + 1" for each in self.loops)]
        lines = [f"for {v} in range({self.random.choice(spans)}):"]
        self.loops.append(v)
        inside = self.inner(depth)
        if self.random.random() < 0.2:
            place = self.random.randint(0, 1) * len(inside)
            jump = self.random.choice(["break", "continue"])
            inside[place:place] = [f"    if {self.random.choice(self.numbers)} > 0.5:", f"        {jump}"]
        self.loops.pop()
        return [*lines, *inside]

    def _while(self, depth: int) -> list[str]:
        v = f"q{self.count}"
        self.count += 1
        return [f"{v} = 0", f"while {v} < 2 and a < 1.7:", *self.inner(depth), f"    {v} += 1"]

    def _row(self, depth: int) -> list[str]:
        source = self.random.choice(["x", "w", "y"])
        v = f"r{self.count}"
        self.count += 1
        use = f"a += 0.2 * np.sin({v})" if source == "x" else f"e += 0.1 * {v}[1] * scaled({v}, 0.3)"
        return [f"for {v} in {source}:", f"    {use}", *self.inner(depth)]

    def _section(self, _: int) -> list[str]:
        i = self.index()
        right = [f"np.sin(y[{self.index()}])", "x * 0.5", f"w[:, {self.index()}]", f"y[:, {i}] * t", "z", f"y[{i}] / 2"]
        target = [f"y[{i}]", f"y[:, {i}]", "t[:]", "z[:]"]
        return [f"{self.random.choice(target)} {self.random.choice(['=', '+=', '*='])} {self.random.choice(right)}"]

    def _whole(self, _: int) -> list[str]:
        return [
            self.random.choice(
                [
                    "y = np.sin(y) * 0.8 + w",
                    "y = 0.3 * (y @ w)",
                    "t = np.cos(t) * x",
                    "t = 0.5 * (w @ t)",
                    "y = y * t[:, None]",
                    "y[1:] = 0.5 * y[:2]",
                    "t[:2] += z[1:]",
                    "z = np.where(t > 0.2, t, x * z)",
                ]
            )
        ]

    def _reduce(self, _: int) -> list[str]:
        i = self.index()
        right = [
            "t.sum()",
            f"y[{i}].max()",
            "y.mean()",
            f"np.dot(t, y[{i}])",
            "y.sum(axis=0)[1]",
            f"t[y[:, {i}].argmax()]",
        ]
        return [f"{self.random.choice(self.numbers)} = 0.4 * {self.random.choice(right)}"]

    def _copy(self, _: int) -> list[str]:
        v = f"u{self.count}"
        self.count += 1
        use = self.random.choice([f"e += 0.1 * {v}[0] * {v}[2]", f"{v}[1] = {v}[0] * {v}[2]\na += 0.2 * {v}[1]"])
        return [f"{v} = {self.random.choice(['t.copy()', f'y[{self.index()}].copy()', 't * z'])}", *use.split("\n")]

    def _rebind(self, _: int) -> list[str]:
        v = f"u{self.count}"
        self.count += 1
        return [
            f"{v} = np.empty(3)",
            "for j in range(3):",
            f"    {v}[j] = np.sin(t[j] + {self.expression(1)})",
            f"t = {v}",
        ]
