"""Operators whose gradient is wrong, each in one way."""

from __future__ import annotations

import numpy as np
from broken import broken


@broken("gradient", r"that of x is wrong in 24 of 24 elements; worst at \[\d, \d\]: backward gives .*, finite")
def factor():
    """the derivative of x² without its 2"""
    return lambda x: x * x, lambda x, y, dy: dy * x


@broken("gradient", "finite differences give")
def sign():
    """the derivative of the cosine without its minus"""
    return np.cos, lambda x, y, dy: dy * np.sin(x)


@broken("gradient", "finite differences give")
def ignores_what_arrives():
    """a backward pass that does not multiply with the gradient that arrives"""
    return lambda x: x * x, lambda x, y, dy: 2 * x


@broken("gradient", "finite differences give")
def other_branch():
    """a leaky ReLU whose gradient forgets the leak"""
    return lambda x: np.where(x > 0, x, 0.1 * x), lambda x, y, dy: dy * (x > 0)


@broken("gradient", "finite differences give")
def slightly_off():
    """a constant rounded to three digits in the gradient alone"""

    def forward(x):
        return np.tanh(0.7978845608 * x)

    return forward, lambda x, y, dy: dy * 0.798 * (1 - y * y)


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


@broken("gradient", "that of x is wrong in .*backward gives .*, finite differences give")
def at_the_kink():
    """a ReLU with a slope of 5 at zero, which is on neither side of it"""
    return lambda x: np.maximum(x, 0), lambda x, y, dy: dy * np.where(x == 0, 5, x > 0)


@broken("gradient", "it has no gradient")
def no_backward():
    """no backward pass at all"""
    return np.tanh, None


@broken("gradient", "that of x is wrong", outputs=2, told=lambda x: (x, x))
def one_of_two_outputs():
    """two outputs, and the gradient of the second is dropped"""
    return lambda x: (np.sin(x), np.cos(x)), lambda x, s, c, ds, dc: ds * c if ds is not None else np.zeros_like(x)


@broken("gradient", "TypeError|None", outputs=2, told=lambda x: (x, x))
def an_unused_output():
    """two outputs, and a backward pass that fails where one of them is not used"""
    return lambda x: (np.sin(x), np.cos(x)), lambda x, s, c, ds, dc: ds * c - dc * s


@broken("gradient", "finite differences give")
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
