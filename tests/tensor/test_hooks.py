"""Hooks on gradients, kept gradients of values in between, and backward passes that leave a graph."""

from __future__ import annotations

from typing import Any

import pytest

import app
from app import Tensor, to_tensor
from app.errors import OperatorError


def leaf(*numbers: float) -> Tensor:
    return to_tensor(list(numbers), "float64", stop_gradient=False)


def test_a_hook_sees_and_may_change_the_gradient_of_a_value_in_between():
    x = leaf(2.0)
    y = x * 3.0
    seen: list[Any] = []
    first = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10.0)
    (y * y).backward(retain_graph=True)
    assert (seen, x.grad.tolist()) == ([[12.0]], [360.0])
    assert first.remove()
    assert not first.remove()
    assert app.grad(y * 1.0, x)[0].tolist() == [30.0]
    assert len(seen) == 1


def test_a_hook_on_a_leaf_sees_the_whole_gradient_of_a_pass():
    x = leaf(2.0)
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 3.0 + x).backward()
    (x * 2.0).backward()
    assert (seen, x.grad.item()) == ([4.0, 2.0], 6.0)


def test_a_value_without_gradient_takes_no_hook():
    with pytest.raises(OperatorError, match="has no use for a hook"):
        to_tensor([1.0]).register_hook(print)


def test_retained_gradients_come_after_hooks_and_add_up():
    x = leaf(2.0)
    y = x * 3.0
    y.retain_grads()
    y.register_hook(lambda g: g * 2.0)
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert y.grad.tolist() == [48.0]


def test_backward_can_leave_gradients_that_are_differentiated_again():
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    assert x.grad.tolist() == [12.0]
    assert app.grad(x.grad, x)[0].tolist() == [12.0]


def test_backward_into_some_inputs_alone():
    x, w = leaf(2.0), leaf(3.0)
    app.autograd.backward(x * w, inputs=[w])
    assert (x.grad, w.grad.tolist()) == (None, [2.0])


def test_a_kept_gradient_is_that_of_the_value_after_a_change_in_place():
    x = app.to_tensor([1.0], stop_gradient=False)
    y = x * 1.0
    y.retain_grads()
    y.multiply_(app.to_tensor([2.0]))
    y.multiply_(app.to_tensor([5.0]))
    (y * 3.0).backward()
    assert y.grad.tolist() == [3]
    assert x.grad.tolist() == [30]


def test_a_hook_stays_with_the_value_before_a_change_in_place():
    x = app.to_tensor([1.0], stop_gradient=False)
    y, seen = x * 1.0, []
    y.register_hook(lambda gradient: seen.append(gradient.tolist()))
    y.multiply_(app.to_tensor([2.0]))
    (y * 3.0).backward()
    assert seen == [[6]]


def test_kept_gradients_of_views_of_one_memory():
    base = app.to_tensor([1.0, 1.0], stop_gradient=False) * 1.0
    view, other = base[:], base[:]
    view.retain_grads()
    other.retain_grads()
    base.retain_grads()
    view.multiply_(app.to_tensor([2.0, 2.0]))
    (view + other * 3.0).sum().backward()
    assert (view.grad.tolist(), other.grad.tolist(), base.grad.tolist()) == ([1, 1], [3, 3], [4, 4])
