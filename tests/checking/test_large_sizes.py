"""The check of gradients at large sizes and at numbers of all magnitudes, along a random direction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from checking.verdicts import with_backward, words

from app.checking.checks import examine
from app.checking.examples import inputs_for
from app.checking.operators import user_operator

pytestmark = pytest.mark.slow


def only_first(array, rows=None, columns=None):
    part = np.zeros_like(array)
    part[:rows, :columns] = array[:rows, :columns]
    return part


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def normed(x):
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)


def normed_grad(x, dy, width=None):
    centred = x - x.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
    mean = dy.mean(axis=1, keepdims=True) if width is None else dy.sum(axis=1, keepdims=True) / width
    return r * (dy - mean - centred * r * (dy * centred * r).mean(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("forward", "backward", "shown"),
    [
        # a threshold that is slightly off
        (lambda x: np.clip(x, 0, 6), lambda x, dy: dy * ((x > 0) & (x < 5.9)), "x float64[260, 6], that of x is wrong"),
        (lambda x: np.clip(x, 0, 6), lambda x, dy: dy * ((x > 0) & (x < 6.1)), "x float64[260, 6], that of x is wrong"),
        (lambda x: np.maximum(x, 0), lambda x, dy: dy * (x > 0.01), "x float64[260, 6], that of x is wrong"),
        # right below the size of a block
        (lambda x: np.sin(x), lambda x, dy: only_first(np.cos(x) * dy, rows=128), "x float64[260, 6], "),
        (
            lambda x: np.sin(x),
            lambda x, dy: only_first(np.cos(x) * dy, columns=32),
            "x float64[4, 66], that of x is wrong",
        ),
        (
            softmax,
            lambda y, dy: y * (dy - (y * dy)[:, :32].sum(axis=1, keepdims=True)),
            "x float64[4, 66], that of x is wrong",
        ),
        # a weight and a bias for each column
        (
            lambda x, w: x * w,
            lambda x, w, dy: (dy * w, only_first(dy * x, rows=128).sum(axis=0)),
            "w float64[6], in a random direction: ",
        ),
    ],
)
def test_a_gradient_is_also_compared_at_large_sizes_and_at_numbers_of_all_magnitudes(
    forward: Any, backward: Any, shown: str
):
    shapes = [((4, 6), "float64"), ((6,), "float64")] if "w float64" in shown else []
    one = user_operator(with_backward(forward, backward), "operator")
    (verdict,) = examine(inputs_for(one, shapes), ["gradient"])
    assert verdict.failed
    assert shown in verdict.words


def test_a_width_that_is_written_as_a_number_is_found_unless_the_user_gave_the_shape():
    one = user_operator(with_backward(normed, lambda x, dy: normed_grad(x, dy, width=6)), "operator")
    (default, *_) = examine(inputs_for(one), ["gradient"])
    (explicit, *_) = examine(inputs_for(one, [((4, 6), "float64")]), ["gradient"])
    assert (default.state, explicit.state) == ("FAILED", "ok")


@pytest.mark.parametrize(
    ("forward", "backward", "state"),
    [
        (lambda x, w: x @ w, lambda x, w, dy: (dy @ w.T, (x if x.shape == w.shape else x.T) @ dy), "FAILED"),
        # meant for a row b, though x * b takes a matrix, too
        (lambda x, b: x * b, lambda x, b, dy: (dy * b, np.broadcast_to((dy * x).sum(axis=0), b.shape)), "ok"),
    ],
)
def test_inputs_of_different_shapes_are_also_tried_with_one_shape(forward: Any, backward: Any, state: str):
    one = user_operator(with_backward(forward, backward), "operator")
    second = (6, 6) if state == "FAILED" else (6,)
    given = inputs_for(one, [((4, 6), "float64"), (second, "float64")])
    example = replace(
        given, inputs=tuple(i._replace(values=a) for i, a in zip(given.inputs, given.arrays(), strict=True))
    )
    (verdict, *_) = examine(example, ["gradient"])
    assert verdict.state == state
    assert ("with x float64[6, 6], w float64[6, 6], in a random direction: " in verdict.words) == verdict.failed


def signed_power(x):
    return np.sign(x) * np.abs(x) ** 1.5


@pytest.mark.parametrize(
    "operator",
    [
        with_backward(signed_power, lambda x, dy: dy * 1.5 * np.abs(x) ** 0.5),  # its slope at 0 changes with the step
        with_backward(normed, lambda x, dy: normed_grad(x, dy)),
        with_backward(softmax, lambda y, dy: y * (dy - (y * dy).sum(axis=1, keepdims=True))),
        with_backward(lambda x: np.cbrt(x), lambda y, dy: dy / (3 * y * y)),
    ],
)
def test_a_steep_function_of_tiny_numbers_has_the_right_gradient(operator: Any):
    assert words(operator, "gradient").startswith("ok")


@pytest.mark.parametrize(("slope", "state"), [(1.0, "ok"), (2.0, "FAILED")])
def test_the_whole_numbers_of_an_example_call_keep_its_number_of_rows(slope: float, state: str):
    one = with_backward(lambda x, k: x * k, lambda k, dy: (slope * dy * k, np.zeros(k.shape)))
    subject = inputs_for(user_operator(one, "it"), [((4, 6), "float64"), ((4, 6), "int64")])
    x, k = subject.inputs
    subject = replace(subject, inputs=(x, k._replace(values=np.arange(24).reshape(4, 6))))
    (verdict, *_) = examine(subject, ["gradient"])
    assert verdict.state == state


def picked_grad(i, x, dy):
    dx = np.zeros_like(x)
    np.add.at(dx, i, dy)
    return np.zeros(i.shape), dx


@pytest.mark.parametrize(
    ("forward", "backward", "shapes"),
    [
        # the first input has no rows that could be more
        (lambda s, x: s * x, lambda s, x, dy: ((dy * x).sum(), dy * s), [((), "float64"), ((4,), "float64")]),
        # the rows of the result are not those of the input that has a gradient
        (lambda i, x: x[i], picked_grad, [((3,), "int64"), ((4, 5), "float64")]),
    ],
)
def test_inputs_whose_rows_are_not_those_of_each_other(forward: Any, backward: Any, shapes: Any):
    one = user_operator(with_backward(forward, backward), "operator")
    (verdict,) = examine(inputs_for(one, shapes), ["gradient"])
    assert verdict.state == "ok"
