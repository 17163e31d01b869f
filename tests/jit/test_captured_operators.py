"""Users' operators in traced functions, on arguments and on captured Tensors, do what they do eagerly.

Some functions are written by hand, and others at random, with control flow around the operators.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from modules_of_text import module_of_text

import app
from app.autograd import Function, PyLayer
from app.custom.shelf.swish import swish
from app.errors import AppError, InPlaceError, OperatorError
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


class Settled(Function):
    """Has settings that are no Tensors, and a context that is set up apart."""

    @staticmethod
    def forward(x, factor, names, y):
        return x * factor + y if "plus" in names else x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, d):
        return 10 * d * ctx.factor, None, None, d


class Listed(PyLayer):
    """Has a list of Tensors, two outputs, and no gradient for the second."""

    @staticmethod
    def forward(ctx, values, scale=1.0):
        ctx.scale = scale
        return values[0] * scale, values[0] + values[1]

    @staticmethod
    def backward(ctx, d, e):
        return 10 * d * ctx.scale + e, None


class Nested(PyLayer):
    """Calls other operators of users in both directions."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return smooth(mixed(x, y)) + hooked(x, x)

    @staticmethod
    def backward(ctx, d):
        x, y = ctx.saved_tensor()
        return 10 * smooth(x) * d, Sign.apply(y) * d


@app.custom_op(outputs=("low", "high"))
def bounds(x, y):
    return np.minimum(x, y), np.maximum(x, y)


@bounds.backward
def _(x, y, dlow, dhigh):
    return 10 * dlow, 10 * dhigh


OPERATORS = {
    "py_func": hooked,
    "PyLayer": lambda x, y: sum(Layered.apply(x, y)),
    "PyLayer of a list": lambda x, y: sum(Listed.apply([x, y], scale=3.0)),
    "nested": Nested.apply,
    "Function": lambda x, y: Sign.apply(x) * Sign.apply(y),
    "Function with settings": lambda x, y: Settled.apply(x, 3.0, ("plus", "other"), y),
    "custom_op": lambda x, y: mixed(x, y, factor=0.7),
    "elementwise": lambda x, y: smooth(x) + smooth(y) * 2,
    "several outputs": lambda x, y: sum(bounds(x, y)),
    "shipped": lambda x, y: swish(x) + swish(y),
}


def values_and_gradients(operator, captured, traced):
    """The loss and the gradients; a gradient may be zeros when traced, where it is None eagerly."""
    x, y, w, v = (parameter(*numbers) for numbers in ((1.5, 0.5), (0.4, -0.6), (0.3, -0.7), (-0.2, 0.9)))

    def function(x, y):
        first, second = (w if "first" in captured else x), (v if "second" in captured else y)
        with app.no_grad():
            factor = operator(first, second)
        return (operator(first, second) * x + factor * w).sum() + (w * v).sum()

    run = to_static(function, backend="reference") if traced else function
    loss = run(x * 1, y)
    loss.backward()
    return [loss.numpy(), *(np.zeros(2) if t.grad is None else t.grad.numpy() for t in (x, y, w, v))]


def parameter(*numbers):
    return app.to_tensor(np.array(numbers, "float32"), stop_gradient=False)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("captured", ["none", "first", "second", "first and second"])
def test_a_traced_operator_gives_the_values_and_gradients_of_the_eager_one(operator, captured):
    eager, traced = (values_and_gradients(OPERATORS[operator], captured, traced) for traced in (False, True))
    for expected, actual in zip(eager, traced, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_needs_input_grad_is_right_in_a_traced_operator():
    needed = []

    class Needing(Function):
        @staticmethod
        def forward(ctx, x, scale, y):
            needed.append(ctx.needs_input_grad)
            return x * scale + y

        @staticmethod
        def backward(ctx, d):
            return d, None, None

    w, frozen = parameter(1.0), app.to_tensor([1.0])
    to_static(lambda x: Needing.apply(w, 2.0, frozen) + x, backend="reference")(frozen)
    assert needed[-1] == (True, False, False)


def test_a_captured_out_of_py_func_is_filled_unless_a_gradient_would_flow():
    w, out = parameter(1.0, 2.0), app.zeros([2])

    def function(x, backward):
        return py_func(np.exp, w, out, backward_func=backward) + x + out

    run, zeros = to_static(function, backend="reference"), app.zeros([2])
    np.testing.assert_allclose(run(zeros, None).numpy(), 2 * np.exp([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_allclose(out.numpy(), np.exp([1.0, 2.0]), rtol=1e-6)
    with pytest.raises(OperatorError, match=r"its out 0 is a Tensor from outside .*InputSpec.from_tensor\(out\)"):
        run(zeros, lambda w, e, d: e * d)


@pytest.mark.parametrize("marked", [True, False])
def test_a_traced_layer_cannot_change_its_input_in_place(marked):
    class AddsOne(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1.0)
            if marked:
                ctx.mark_dirty(x)
            return x if marked else x * 2

    def function(x):
        y = x * 1
        return AddsOne.apply(y) + y

    with pytest.raises(AppError, match=r"forward changes an input in place, .* return a new Tensor"):
        to_static(function, backend="reference")(parameter(1.0))


# A PyLayer's functions are called with Variables

OUTER = app.to_tensor([2.0, 3.0])


class Branches(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        if x.sum() > 0:
            return x * 2
        return x * 3

    @staticmethod
    def backward(ctx, d):
        (x,) = ctx.saved_tensors
        return app.where(x.sum() > 0, d * 2, d * 3)


@pytest.mark.parametrize("numbers", [(1.5, 0.5), (-1.5, -0.5)])
def test_a_branch_over_a_tensor_in_forward_becomes_an_operator(numbers):
    x, e = parameter(*numbers), parameter(*numbers)
    y = to_static(lambda x: Branches.apply(x).sum(), backend="reference")(x)
    y.backward()
    Branches.apply(e).sum().backward()
    assert (x.grad.tolist(), y.item()) == (e.grad.tolist(), Branches.apply(e).sum().item())


def test_a_tensor_that_forward_hands_to_backward_is_read_anew_at_each_call():
    weight = parameter(2.0, 3.0)

    class Weighted(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.rest = {"weight": [weight]}
            return x * weight

        @staticmethod
        def backward(ctx, d):
            return d * ctx.rest["weight"][0]

    run = to_static(lambda x: Weighted.apply(x).sum(), backend="reference")
    for expected in ([2.0, 3.0], [5.0, 6.0]):
        x = parameter(1.0, 1.0)
        with app.no_grad():
            weight.set_value(expected)
        run(x).backward()
        assert x.grad.tolist() == expected


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (lambda ctx, d: d * OUTER, "a Tensor cannot be an input of an operator in a Program"),
        (lambda ctx, d: (1 - ctx.hidden() ** 2) * d, "it belongs to another Program"),
        (lambda ctx, d: d if d.sum() > 0 else -d, "Python cannot branch on it"),
    ],
)
def test_what_backward_cannot_read_there_is_an_error_that_says_what_to_write(backward, message):
    def forward(ctx, x):
        y = app.tanh(x)
        ctx.hidden = lambda: y
        return y

    layer = type("Hidden", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    with pytest.raises(AppError, match=rf"backward \(test_captured.*{message}.*set what it reads .* of ctx"):
        to_static(lambda x: layer.apply(x).sum(), backend="reference")(parameter(1.0, 2.0))


class ComputedAgain(Function):
    """A function whose backward computes the forward pass again, and differentiates that."""

    grad: Any = None

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return app.sin(x) * x

    @classmethod
    def backward(cls, ctx, d):
        (x,) = ctx.saved_tensor()
        x.stop_gradient = False
        return cls.grad([app.sin(x) * x], [x], [d])[0]


def test_a_backward_that_differentiates_does_so_in_the_program():
    run = to_static(lambda x: ComputedAgain.apply(x).sum(), backend="reference")
    ComputedAgain.grad = staticmethod(app.grad)
    with pytest.raises(AppError, match=r"element 0 is a Variable; write opsmith.static.gradients"):
        run(parameter(0.3, 2.0))
    ComputedAgain.grad = staticmethod(app.static.gradients)
    x = parameter(0.3, 2.0)
    run(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.sin([0.3, 2.0]) + [0.3, 2.0] * np.cos([0.3, 2.0]), rtol=1e-5)


def test_what_forward_hands_to_backward_in_a_loop_is_that_of_the_iteration():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.parts, ctx.factor = {"square": x * x}, 3
            return ctx.parts["square"] * x

        @staticmethod
        def backward(ctx, d):
            return ctx.factor * ctx.parts["square"] * d

    def function(x):
        i = app.zeros([], "int64")
        while i < 2:
            x = Cube.apply(x)
            i = i + 1
        return x.sum()

    x = parameter(1.1, -0.9)
    to_static(function, backend="reference")(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), 9 * np.array([1.1, -0.9]) ** 8, rtol=1e-5)


def test_second_derivatives_flow_through_a_value_that_forward_saved():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(square)
            return square * x

        @staticmethod
        def backward(ctx, d):
            return 3 * ctx.saved_tensors[0] * d

    def second(x):
        (first,) = app.grad(Cube.apply(x).sum(), x, create_graph=True)
        (second,) = app.grad(first.sum(), x)
        return second

    x = parameter(1.0, -2.0)
    assert to_static(second, backend="reference")(x).tolist() == [6.0, -12.0]


# Functions written at random

FORMS = [
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
        form = self.random.choice(FORMS)
        return form.format(self.value(), self.value(), round(self.random.uniform(0.2, 0.9), 2))

    def condition(self):
        plain = f"{self.value()}.sum() > {self.random.uniform(-1, 1):.2f}"
        kinds = [plain, f"{plain} and {self.value()}.max() < 0.8", f"absent is None or {plain}", f"not {plain}"]
        return self.random.choice([*kinds, f"{self.value()}.mean() < 0.1 or {plain}"])

    def write(self, indent, text):
        self.lines.append("    " * indent + text)

    def statement(self, indent, in_loop):
        kind = self.random.choice(["set", "set", "set", "in place", "if", "for", "while", "no_grad", "leave", "leave"])
        name = self.random.choice("abc")
        if kind == "in place" and indent < 3:
            change = self.random.choice(["[0] = {}.sum()", " += {}", " = {}"])
            self.write(indent, f"{name} = {name} * 1")
            self.write(indent, name + change.format(self.expression()))
        elif kind == "if" and indent < 3:
            self.opened(indent, in_loop, f"if {self.condition()}:")
        elif kind == "for" and indent < 3:
            items = self.random.choice(["range(2)", "range(3)", "range(count)", "[1, 2]"])
            self.opened(indent, in_loop, f"for k in {items}:")
        elif kind == "while" and indent < 3:
            counter = f"n{len(self.lines)}"
            self.write(indent, f"{counter} = x.sum() * 0")
            self.opened(indent, in_loop, f"while {counter} < {self.random.choice('12')}:", f"{counter} = {counter} + 1")
        elif kind == "no_grad":
            self.write(indent, "with app.no_grad():")
            self.write(indent + 1, f"{name} = {self.expression()}")
        elif kind == "leave":
            self.write(indent, f"if {self.condition()}:")
            ends = [*["break", "continue"] * in_loop, "return (a * b + w * v).sum()"]
            self.write(indent + 1, self.random.choice(ends))
        else:
            self.write(indent, f"{name} = {self.expression()}")

    def opened(self, indent, in_loop, *lines):
        """Write a statement with a body and, half of the time, an `else`."""
        for further, line in enumerate(lines):
            self.write(indent + further, line)
        self.block(indent + 1, in_loop or not lines[0].startswith("if"))
        if self.random.random() < 0.5:
            self.write(indent, "else:")
            self.block(indent + 1, in_loop)

    def block(self, indent, in_loop):
        for _ in range(self.random.randint(1, 2)):
            self.statement(indent, in_loop)

    def function(self):
        self.write(0, "def function(x, y, count, absent=None):")
        self.write(1, "a, b, c = x * 1, y * w, v * 1")
        for _ in range(self.random.randint(2, 5)):
            self.statement(1, False)
        self.write(1, "return (a * b + c).sum() + (w * v).sum()")
        return "\n".join(self.lines) + "\n"


def outcome(seed, backend):
    numbers = np.random.default_rng(seed).uniform(-1, 1, (5, 3)).astype("float32")
    w, v, frozen, x, y = (app.to_tensor(row, stop_gradient=place == 2) for place, row in enumerate(numbers))
    source = Writer(seed).function()
    function = module_of_text(source, **{**globals(), "w": w, "v": v, "frozen": frozen}).function
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
    actual, _ = outcome(seed, backend)
    for what, a, b in zip(("value", "dw", "dv", "dx", "dy"), actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5, err_msg=f"seed {seed}: {what} of\n{source}")


@pytest.mark.parametrize("first", range(0, 15, 5))
def test_random_functions_give_the_same_traced_and_eagerly(first):
    for seed in range(first, first + 5):
        check(seed)


@pytest.mark.slow
def test_a_random_function_gives_the_same_when_compiled():
    check(2, "compiled")
