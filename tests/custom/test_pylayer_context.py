"""The context of a PyLayer: what it saves, what it knows of the arguments, and that each call has its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import data, layer

import app
from app.errors import OperatorError

PLACE = r"\(layers\.py:\d+\)"


def test_save_for_backward_takes_several_tensors_and_none():
    seen: list[Any] = []

    def forward(ctx, x, w):
        ctx.save_for_backward(x, None, w)
        return x * w

    def backward(ctx, dy):
        x, nothing, w = ctx.saved_tensor()
        seen.append(nothing)
        return dy * w, dy * x

    x, w = data(2.0, 3.0), data(5.0, 7.0)
    layer(forward, backward).apply(x, w).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [5, 7])
    np.testing.assert_array_equal(w.grad.numpy(), [2, 3])
    assert seen == [None]


def saves(*values: Any) -> Any:
    """A function that saves these, where "x" is what it is given, one call for each of them."""

    def function(ctx, x):
        for value in values:
            ctx.save_for_backward(x if value == "x" else value)
        return x * 1.0

    return function


@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (saves("x", "x"), saves(), "save_for_backward was called a second time; pass it all tensors at once"),
        (saves(), saves("x"), "save_for_backward can only be called in forward"),
        (saves([1]), saves(), "save_for_backward takes Tensors, found list; keep other values as attributes of ctx"),
    ],
)
def test_save_for_backward_is_called_once_in_forward_with_tensors(forward: Any, backward: Any, message: str):
    with pytest.raises(OperatorError, match=rf"operator cus {PLACE}: in its function function: {message}"):
        layer(forward, backward).apply(data(1.0)).backward()


def test_nothing_saved_is_an_empty_tuple():
    seen: list[Any] = []
    backward = lambda ctx, dy: seen.append((ctx.saved_tensor(), ctx.saved_tensors)) or dy  # noqa: E731
    layer(lambda ctx, x: x * 1.0, backward).apply(data(1.0)).backward()
    assert seen == [((), ())]


def test_what_was_saved_must_not_change_before_backward():
    x = data(2.0)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    y = layer(forward, lambda ctx, dy: 2.0 * ctx.saved_tensor()[0] * dy).apply(x)
    with app.no_grad():
        x *= 100.0
    with pytest.raises(RuntimeError, match=r"Tensor 0 that forward saved.*modified by an inplace operation"):
        y.backward()


def test_each_apply_has_a_context_of_its_own():
    cus = layer(
        lambda ctx, x, k: (setattr(ctx, "k", k), x * k)[1],
        lambda ctx, dy: dy * ctx.k,
    )
    x = data(1.0)
    (cus.apply(x, 2.0) + cus.apply(x, 30.0)).backward()
    assert x.grad.item() == 32


def test_forward_learns_which_arguments_want_a_gradient():
    seen: list[Any] = []
    cus = layer(lambda ctx, x, k, w: (seen.append(ctx.needs_input_grad), x * w * k)[1], lambda ctx, dy: (dy, None))
    cus.apply(data(1.0), 2.0, data(3.0, stop_gradient=True))
    cus.apply(data(1.0, stop_gradient=True), w=data(3.0), k=2.0)
    assert seen == [(True, False, False), (False, False, True)]


def test_a_forward_may_give_its_attributes_any_name():
    def forward(ctx, x):
        ctx.label, ctx.returned, ctx.close, ctx.among_results, ctx.lenient = 1, 2, 3, 4, 5
        ctx.inputs_on_tape, ctx.is_differentiable, ctx.definition, ctx.kind = 6, 7, 8, 9
        return x * 2.0

    def backward(ctx, dy):
        assert (ctx.label, ctx.returned, ctx.close, ctx.kind) == (1, 2, 3, 9)
        return dy * 2.0

    x = data(2.0, 3.0)
    layer(forward, backward).apply(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])
