"""Hooks on gradients, kept gradients of values in between, and backward passes that leave a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import Tensor, to_tensor
from app.compat import torch
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
    with pytest.raises(OperatorError, match="cannot have a gradient hook"):
        to_tensor([1.0]).register_hook(print)


@pytest.mark.parametrize(("retained_first", "kept"), [(True, 24.0), (False, 48.0)])
def test_retained_gradients_come_after_the_hooks_before_them_and_add_up(retained_first: bool, kept: float):
    x = leaf(2.0)
    y = x * 3.0
    if retained_first:
        y.retain_grads()
    y.register_hook(lambda g: g * 2.0)
    if not retained_first:
        y.retain_grads()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([kept], [144.0])


def test_in_pytorch_retained_gradients_come_after_every_hook():
    y = torch.ones(1, requires_grad=True) * 3.0
    y.retain_grad()
    y.register_hook(lambda g: g * 2.0)
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0]


def test_there_is_nothing_to_retain_where_no_gradient_is_wanted():
    x = to_tensor([1.0])
    x.retain_grads()
    assert x.grad is None
    with pytest.raises(OperatorError, match="has no gradient to retain"):
        torch.ones(1).retain_grad()


def spoiled_by(returned: Any, where: str) -> None:
    """A backward pass with a hook that returns something else than a gradient."""
    x = to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 3.0
    hooked = x if where == "leaf" else y
    if where == "retained":
        y.retain_grads()
    hooked.register_hook(lambda g: returned)
    if where == "grad":
        app.grad(y.sum(), [y, x])
    else:
        y.sum().backward(create_graph=where == "create_graph")


@pytest.mark.parametrize("where", ["leaf", "inner", "retained", "grad", "create_graph"])
@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (app.ones([3]), r"changed the size of a gradient of shape \[2\]: it returned shape \[3\]"),
        (app.ones([1]), r"changed the size of a gradient of shape \[2\]: it returned shape \[1\]"),
        (app.ones([2], "float64"), "changed the type of a gradient of float32: it returned float64"),
        (3.0, "returned a float, expected a Tensor, or None"),
        (np.ones(2), "returned a ndarray, expected a Tensor, or None"),
    ],
)
def test_a_hook_cannot_return_something_else(returned: Any, words: str, where: str):
    with pytest.raises(OperatorError, match=rf"hook '.*<lambda>' \(.*test_hooks.py:\d+\) .*{words}"):
        spoiled_by(returned, where)


def test_hooks_of_leaves_are_called_once_for_gradients_of_inputs_alone():
    for kind, of_grad in ((app, 2.0), (torch, 20.0)):  # Paddle's grad leaves out the hooks of leaves
        x = kind.ones([1])
        x.stop_gradient = False
        x.register_hook(lambda g: g * 10.0)
        app.autograd.backward([(x * 2.0).sum()], inputs=[x])
        assert x.grad.tolist() == [20.0]
        assert app.grad((x * 2.0).sum(), x)[0].tolist() == [of_grad]


def test_backward_can_leave_gradients_that_are_differentiated_again():
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    assert x.grad.tolist() == [12.0]
    assert app.grad(x.grad, x)[0].tolist() == [12.0]


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
