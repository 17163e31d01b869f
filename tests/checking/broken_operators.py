"""Operators broken on purpose, each in one way, as functions on NumPy arrays that any framework can hook in.

Their order is that of the table in docs/checking.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Broken:
    """One operator, and how it is found out."""

    name: str
    make: Callable[..., Any]
    """Gives `forward(*inputs)` and `backward(*inputs, *outputs, *gradients of the outputs)`; for a layer, a class."""
    check: str
    """The check that finds it, with this message."""
    message: str
    shapes: Sequence[tuple[int, ...]] = ((4, 6),)
    told: Callable[..., Any] = lambda *inputs: inputs[:1]
    """The shapes of the outputs, as the operator claims them, from those of the inputs."""
    outputs: int = 1
    layer: bool = False
    """Whether it is written on Tensors, over a base class that `make` is given."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else it declares of itself."""


BROKEN: list[Broken] = []
DIFFERENCES = "finite differences give"


def broken(check: str, message: str, **fields: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what a function makes; the docstring of the function says what is wrong."""

    def add(make: Callable[..., Any]) -> Callable[..., Any]:
        BROKEN.append(Broken(make.__name__, make, check, message, **fields))
        return make

    return add


def pair(name: str, forward: Any, backward: Any, message: str = DIFFERENCES, check: str = "gradient") -> None:
    """Register two functions that share no state; the comment above says what is wrong."""
    BROKEN.append(Broken(name, lambda: (forward, backward), check, message))


# --- Gradients ---


@broken(
    "gradient",
    r"wrong in 24 of 24 elements; worst at \[\d, \d\], x = .*: backward \(.*, .*\) gives .*, finite",
)
def factor():
    """the derivative of x² without its 2"""
    return lambda x: x * x, lambda x, y, dy: dy * x


# the derivative of the cosine without its minus
pair("sign", np.cos, lambda x, y, dy: dy * np.sin(x))

# a backward pass that does not multiply with the gradient that arrives
pair("ignores_what_arrives", lambda x: x * x, lambda x, y, dy: 2 * x)

# a leaky ReLU whose gradient forgets the leak
pair("other_branch", lambda x: np.where(x > 0, x, 0.1 * x), lambda x, y, dy: dy * (x > 0))

# a constant rounded to three digits in the gradient alone
pair("slightly_off", lambda x: np.tanh(0.7978845608 * x), lambda x, y, dy: dy * 0.798 * (1 - y * y))


@broken("gradient", "that of g is wrong in 24 of 24", shapes=((4, 6), (4, 6)))
def no_gradient_for_the_second():
    """zeros for the second of two inputs"""
    return lambda x, g: x * g, lambda x, g, y, dy: (dy * g, np.zeros_like(g))


@broken("gradient", "that of x is wrong", shapes=((4, 6), (4, 6)))
def swapped():
    """the gradients of two inputs in the wrong order"""
    return lambda x, g: x * g * g, lambda x, g, y, dy: (2 * x * g * dy, g * g * dy)


@broken("proportional", r"with -?\d+ times the gradient of the outputs, that of x is wrong in")
def clips_what_arrives():
    """a backward pass that clips the gradient that arrives"""
    return lambda x: 2 * x, lambda x, y, dy: 2 * np.clip(dy, -2, 2)


@broken("gradient", "that of b is wrong in 6 of 6", shapes=((4, 6), (6,)))
def mean_for_sum():
    """the gradient of a bias averaged over the batch instead of added up"""
    return lambda x, b: x + b, lambda x, b, y, dy: (1 * dy, dy.mean(0))


@broken("gradient", "that of x is wrong", shapes=((4, 6), (6, 6)))
def not_transposed():
    """a product of matrices whose gradient does not transpose"""
    return lambda x, w: x @ w, lambda x, w, y, dy: (dy @ w, x.T @ dy)


@broken("gradient", r"the gradient of x has shape \[\], expected that of x, \[4, 6\]")
def shape_of_the_gradient():
    """a gradient that is one number for all elements"""
    return lambda x: 2 * x, lambda x, y, dy: (2 * dy).sum()


# a ReLU with a slope of 5 at zero, which is on neither side of it
pair("at_the_kink", lambda x: np.maximum(x, 0), lambda x, y, dy: dy * np.where(x == 0, 5, x > 0))

# no backward pass at all
pair("no_backward", np.tanh, None, "it has no gradient")


@broken("gradient", "that of x is wrong", outputs=2, told=lambda x: (x, x))
def one_of_two_outputs():
    """two outputs, and the gradient of the second is dropped"""
    return lambda x: (np.sin(x), np.cos(x)), lambda x, s, c, ds, dc: ds * c if ds is not None else np.zeros_like(x)


@broken("gradient", DIFFERENCES)
def rounds_inside():
    """float64 that is rounded to float32 on the way"""
    return lambda x: np.tanh(x.astype("float32")).astype(x.dtype), lambda x, y, dy: dy * (1 - y * y)


@broken("second", "wrong in .* finite differences give", layer=True)
def wrong_second_derivative(base):
    """a gradient whose own gradient is lost, as part of it is taken off the tape"""

    class Square(base):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return dy * 3 * x * x.detach()

    return Square


# --- Side effects ---


@broken("untouched", "assignment destination is read-only")
def writes_into_its_input():
    """a ReLU that zeroes its input in place"""

    def forward(x):
        x[x < 0] = 0
        return x.copy()

    return forward, lambda x, y, dy: dy * (y > 0)


@broken("gradient", "output array is read-only")
def writes_into_what_arrives():
    """a backward pass that works in place on the gradient that arrives"""

    def backward(x, y, dy):
        dy *= 1 - y * y
        return dy.copy()

    return np.tanh, backward


@broken("gradient", "output array is read-only")
def writes_into_the_result():
    """a backward pass that uses the memory of the result for its own"""

    def backward(x, y, dy):
        result = y.copy()
        y *= dy
        return dy * result

    return np.exp, backward


@broken("gradient", "assignment destination is read-only")
def writes_into_the_input_later():
    """a backward pass that writes into the input"""

    def backward(x, y, dy):
        gradient = dy * np.cos(x)
        x[...] = 0
        return gradient

    return np.sin, backward


@broken("repeatable", "the same inputs give another result the second time")
def random_without_a_seed():
    """dropout that draws a mask each time, and another one in the backward pass"""
    random = np.random.default_rng()
    return lambda x: x * random.integers(0, 2, x.shape), lambda x, y, dy: dy * random.integers(0, 2, x.shape)


@broken("repeatable", "another gradient the second time")
def noise_in_the_gradient():
    """a little noise in the gradient alone, as unordered sums make it"""
    random = np.random.default_rng()
    return lambda x: x * x, lambda x, y, dy: 2 * x * dy * (1 + 1e-9 * random.random(x.shape))


@broken("repeatable", "is computed from what the second call saved")
def remembers_the_last_input():
    """what backward needs is kept outside of it, where the next forward pass overwrites it"""
    last: list[Any] = []

    def forward(x):
        last[:] = [x.copy()]
        return x * x

    return forward, lambda x, y, dy: 2 * last[0] * dy


@broken("repeatable", "is computed from what the second call saved", layer=True)
def keeps_it_on_the_class(base):
    """a class that keeps its input on itself instead of in ctx"""

    class Square(base):
        @staticmethod
        def forward(ctx, x):
            Square.x = x.clone().detach()
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return dy * 2 * Square.x

    return Square


@broken("repeatable", "a second call changes the result of the first", layer=True)
def one_buffer_for_all(base):
    """a class that writes its result into the same Tensor each time"""
    buffers: dict[Any, Any] = {}

    class Double(base):
        @staticmethod
        def forward(ctx, x):
            buffer = buffers.setdefault((tuple(x.shape), x.dtype), x.clone().detach())
            buffer[...] = x * 2
            return buffer

        @staticmethod
        def backward(ctx, dy):
            return dy * 2

    return Double


@broken("repeatable", "the same inputs give another result")
def counts_its_calls():
    """a result that changes a little with each call"""
    calls = [0]

    def forward(x):
        calls[0] += 1
        return x * (1 + 1e-9 * calls[0])

    return forward, lambda x, y, dy: 1 * dy


@broken("rows", "it is declared row by row, but rows 0 to 2", options={"row_by_row": True})
def looks_at_the_batch():
    """a norm over the batch, in an operator that is declared to work row by row"""
    return lambda x: x - x.mean(0), lambda x, y, dy: dy - dy.mean(0)


@broken("rows", "alone give other numbers than in a larger batch", options={"row_by_row": True})
def divides_by_the_batch():
    """a result divided by the number of rows, in an operator that is declared to work row by row"""
    return lambda x: x / len(x), lambda x, y, dy: dy / len(x)


# --- Shapes, types and memory ---

# a batch size that is written into the function
pair("knows_one_batch", lambda x: x.reshape(4, 6) * 2.0, lambda x, y, dy: 2 * dy, "reshape", "shapes")


@broken("shapes", r"shape \[-1, 6\] is inferred; with x float64\[4, 6\] the result has \[4, 1\]")
def another_shape_than_told():
    """a sum that is declared to have the shape of its input"""
    return lambda x: x.sum(-1, keepdims=True), lambda x, y, dy: dy[:, :1] * np.ones_like(x)


@broken("types", "in float32 is far from that in float64: by up to")
def other_numbers_in_float32():
    """a constant for float64 alone"""
    return lambda x: x + (1 if x.dtype == np.float64 else 1.01), lambda x, y, dy: 1 * dy


@broken("empty batch", "a batch without rows raises ValueError|a batch without rows raises .*zero-size array")
def fails_without_rows():
    """the largest number of the whole batch, which an empty one has not"""
    return lambda x: np.exp(x - x.max()) * np.exp(x.max()), lambda x, y, dy: dy * y


@broken("layout", "arrays in column order give another result")
def reads_memory_in_its_order():
    """elements read in the order in which they lie in memory"""
    return lambda x: np.tanh(x.ravel(order="K")).reshape(x.shape), lambda x, y, dy: dy * (1 - y * y)


@broken("layout", "give another gradient")
def reads_the_gradient_in_its_order():
    """the gradient that arrives read in the order in which it lies in memory"""
    return np.tanh, lambda x, y, dy: dy.ravel(order="K").reshape(dy.shape) * (1 - y * y)


# --- Numbers ---


@broken("like", "on special numbers the result is wrong .* relu6 gives 6", options={"like": "relu6"})
def another_bound():
    """a ReLU6 that ends at 5"""
    return lambda x: np.clip(x, 0, 5), lambda x, y, dy: dy * ((x > 0) & (x < 5))


@broken("like", "special numbers the result is wrong .* x = nan: it gives 0, relu gives nan", options={"like": "relu"})
def hides_nan():
    """a ReLU that makes 0 of what is no number"""
    return lambda x: np.where(x > 0, x, 0).astype(x.dtype), lambda x, y, dy: dy * (x > 0)


@broken("like", "on special numbers the result is wrong .* gives inf, softplus gives", options={"like": "softplus"})
def overflows():
    """a softplus that is infinite from 710 on"""
    return lambda x: np.log(1 + np.exp(x)), lambda x, y, dy: dy * (1 - np.exp(-y))
