"""Operators that are broken in something else than the formula of their gradient, each in one way."""

from __future__ import annotations

from typing import Any

import numpy as np
from broken import broken

# Manners


@broken("untouched", "assignment destination is read-only")
def writes_into_its_input():
    """a ReLU that zeroes its input in place"""

    def forward(x):
        x[x < 0] = 0
        return x.copy()

    return forward, lambda x, y, dy: dy * (y > 0)


@broken("untouched", "output array is read-only")
def writes_into_what_arrives():
    """a backward pass that works in place on the gradient that arrives"""

    def backward(x, y, dy):
        dy *= 1 - y * y
        return dy.copy()

    return np.tanh, backward


@broken("untouched", "output array is read-only")
def writes_into_the_result():
    """a backward pass that uses the memory of the result for its own"""

    def backward(x, y, dy):
        kept = y.copy()
        y *= dy
        return dy * kept

    return np.exp, backward


@broken("untouched", "assignment destination is read-only")
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
    kept: dict[Any, Any] = {}

    class Double(base):
        @staticmethod
        def forward(ctx, x):
            buffer = kept.setdefault((tuple(x.shape), x.dtype), x.clone().detach())
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


@broken("rows", "it is declared row by row, but rows 0 to 2", row_by_row=True)
def looks_at_the_batch():
    """a norm over the batch, in an operator that is declared to work row by row"""

    def forward(x):
        return x - x.mean(0)

    return forward, lambda x, y, dy: dy - dy.mean(0)


@broken("rows", "alone give other numbers than in a larger batch", row_by_row=True)
def divides_by_the_batch():
    """a result divided by the number of rows, in an operator that is declared to work row by row"""
    return lambda x: x / len(x), lambda x, y, dy: dy / len(x)


# Shapes, types and memory


@broken("shapes", "cannot reshape|reshape")
def knows_one_batch():
    """a batch size that is written into the function"""
    return lambda x: x.reshape(4, 6) * 2.0, lambda x, y, dy: 2 * dy


@broken("shapes", r"shape \[-1, 6\] is inferred; with x float64\[4, 6\] the result has \[4, 1\]")
def another_shape_than_told():
    """a sum that is declared to have the shape of its input"""
    return lambda x: x.sum(-1, keepdims=True), lambda x, y, dy: dy[:, :1] * np.ones_like(x)


@broken("types", "type float64, but float32 was declared")
def another_type_than_told():
    """a float64 constant that widens float32"""
    return lambda x: x * np.ones(6), lambda x, y, dy: 1 * dy


@broken("empty batch", "a batch without rows raises ValueError|a batch without rows raises .*zero-size array")
def fails_without_rows():
    """the largest number of the whole batch, which an empty one has not"""

    def forward(x):
        return np.exp(x - x.max()) * np.exp(x.max())

    return forward, lambda x, y, dy: dy * y


@broken("layout", "arrays in column order give another result")
def reads_memory_in_its_order():
    """elements read in the order in which they lie in memory"""

    def forward(x):
        return np.tanh(x.ravel(order="K")).reshape(x.shape)

    return forward, lambda x, y, dy: dy * (1 - y * y)


@broken("layout", "give another gradient")
def reads_the_gradient_in_its_order():
    """the gradient that arrives read in the order in which it lies in memory"""
    return np.tanh, lambda x, y, dy: dy.ravel(order="K").reshape(dy.shape) * (1 - y * y)


# Numbers


@broken("nan and inf", "NaN in x raises .*not a number")
def refuses_nan():
    """an exception for what is no number, in the middle of a training"""

    def forward(x):
        if np.isnan(x).any():
            raise ValueError("not a number")
        return 2 * x

    return forward, lambda x, y, dy: 2 * dy


@broken("like", "on special numbers the result is wrong .* relu6 gives 6", like="relu6")
def another_bound():
    """a ReLU6 that ends at 5"""
    return lambda x: np.clip(x, 0, 5), lambda x, y, dy: dy * ((x > 0) & (x < 5))


@broken("like", "on special numbers the result is wrong .* it gives 0, relu gives nan, for nan", like="relu")
def hides_nan():
    """a ReLU that makes 0 of what is no number"""
    return lambda x: np.where(x > 0, x, 0).astype(x.dtype), lambda x, y, dy: dy * (x > 0)


@broken("like", "on special numbers the result is wrong .* gives inf, softplus gives", like="softplus")
def overflows():
    """a softplus that is infinite from 710 on"""
    return lambda x: np.log(1 + np.exp(x)), lambda x, y, dy: dy * (1 - np.exp(-y))
