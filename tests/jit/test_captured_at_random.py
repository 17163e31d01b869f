"""Random functions with operators of every hook, on captured parameters and arguments, traced against eager."""

from __future__ import annotations

import linecache
import random

import numpy as np
import pytest

import app
from app.autograd import Function, PyLayer
from app.errors import InPlaceError
from app.jit import to_static
from app.static import InputSpec, py_func

# Gradients that no derivation would find, so that one that is not the user's is noticed.


@app.custom_op(elementwise=True)
def smooth(x):
    return np.tanh(x) * 0.9


@app.custom_op
def mixed(x, y, *, factor=0.5):
    return np.tanh(x * factor + y)


@mixed.backward
def _(x, y, dout, *, factor):
    return 0.3 * dout, -0.7 * dout


class Layered(PyLayer):
    @staticmethod
    def forward(ctx, x, y, factor=0.5):
        ctx.save_for_backward(y)
        return app.tanh(x - y) * factor, app.sin(x)

    @staticmethod
    def backward(ctx, d, e):
        (y,) = ctx.saved_tensor()
        return [g if needs else None for g, needs in zip((d * 0.2 + e * y, d * 0.4), ctx.needs_input_grad, strict=True)]


class Sign(Function):
    @staticmethod
    def forward(ctx, x):
        return smooth(app.sign(x))

    @staticmethod
    def backward(ctx, d):
        return d * 0.6


def hooked(x, y):
    out = InputSpec.from_tensor(x)
    return py_func(lambda a, b: np.cos(a) * b, [x, y], out, backward_func=lambda a, b, o, d: (d * 0.8, d * 0.1))


OPERATORS = [
    "smooth({0})",
    "mixed({0}, {1}, factor={2})",
    "sum(Layered.apply({0}, {1}))",
    "Layered.apply({0}, y={1})[1]",
    "Sign.apply({0})",
    "hooked({0}, {1})",
    "app.tanh({0} * {1})",
    "(Sign.apply({0}) * {1})",
    "({0} * {2} + {1})",
]
OUTSIDE = ("w", "v", "frozen")


class Writer:
    """Writes a function: every branch gives each name of its own a value, so that it can be traced."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 0

    def value(self):
        return self.random.choice(["a", "b", "c", "x", "y", *OUTSIDE])

    def expression(self):
        form = self.random.choice(OPERATORS)
        return form.format(self.value(), self.value(), round(self.random.uniform(0.2, 0.9), 2))

    def condition(self):
        plain = f"{self.value()}.sum() > {self.random.uniform(-1, 1):.2f}"
        kinds = [plain, f"{plain} and {self.value()}.max() < 0.8", f"absent is None or {plain}", f"not {plain}"]
        return self.random.choice([*kinds, f"{self.value()}.mean() < 0.1 or {plain}"])

    def write(self, indent, text):
        self.lines.append("    " * indent + text)

    def statement(self, indent):
        kind = self.random.choice(["set", "set", "set", "in place", "if", "for", "while", "no_grad"])
        name = self.random.choice("abc")
        if kind == "in place" and indent < 3:
            change = self.random.choice(["[0] = {}.sum()", " += {}", " = {}"])
            self.write(indent, f"{name} = {name} * 1")
            self.write(indent, name + change.format(self.expression()))
        elif kind == "if" and indent < 3:
            self.write(indent, f"if {self.condition()}:")
            self.block(indent + 1)
            if self.random.random() < 0.6:
                self.write(indent, "else:")
                self.block(indent + 1)
        elif kind == "for" and indent < 2:
            self.write(indent, f"for k in range({self.random.choice(['2', 'count', '3'])}):")
            self.block(indent + 1)
        elif kind == "while" and indent < 2:
            counter = f"n{len(self.lines)}"
            self.write(indent, f"{counter} = x.sum() * 0")
            self.write(indent, f"while {counter} < {self.random.choice('12')}:")
            self.block(indent + 1)
            self.write(indent + 1, f"{counter} = {counter} + 1")
        elif kind == "no_grad":
            self.write(indent, "with app.no_grad():")
            self.write(indent + 1, f"{name} = {self.expression()}")
        else:
            self.write(indent, f"{name} = {self.expression()}")

    def block(self, indent):
        for _ in range(self.random.randint(1, 2)):
            self.statement(indent)

    def function(self):
        self.write(0, "def function(x, y, count, absent=None):")
        self.write(1, "a, b, c = x * 1, y * w, v * 1")
        for _ in range(self.random.randint(2, 5)):
            self.statement(1)
        self.write(1, "return (a * b + c).sum() + (w * v).sum()")
        return "\n".join(self.lines) + "\n"


def function_of(seed, tensors):
    """The function of a seed over these captured Tensors, with source that can be read."""
    source, file = Writer(seed).function(), f"<captured at random {seed}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    known = {**globals(), **tensors}
    exec(compile(source, file, "exec"), known)
    return known["function"], source


def outcome(seed, backend):
    numbers = np.random.default_rng(seed).uniform(-1, 1, (5, 3)).astype("float32")
    w, v, frozen, x, y = (app.to_tensor(row, stop_gradient=place == 2) for place, row in enumerate(numbers))
    function, source = function_of(seed, {"w": w, "v": v, "frozen": frozen})
    run = function if backend is None else to_static(function, backend=backend)
    loss = run(x, y, app.to_tensor(2) if seed % 2 else 2)
    loss.backward()
    return [loss.numpy(), *[np.zeros(3) if t.grad is None else t.grad.numpy() for t in (w, v, x, y)]], source


def check(seed: int, backend: str = "reference") -> None:
    """Traced, the function of a seed gives the values and the gradients that it gives eagerly."""
    try:
        expected, source = outcome(seed, None)
    except InPlaceError:
        return  # it overwrites what a gradient needs
    found, _ = outcome(seed, backend)
    for what, a, b in zip(("value", "dw", "dv", "dx", "dy"), found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5, err_msg=f"seed {seed}: {what} of\n{source}")


@pytest.mark.parametrize("seeds", [range(start, start + 5) for start in range(0, 25, 5)], ids=str)
def test_a_random_function_is_traced_as_it_runs(seeds):
    for seed in seeds:
        check(seed)


def test_the_compiled_engine_agrees():
    check(2, "compiled")
