"""Hooks on gradients, and kept gradients of values in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from leaves import leaf

import app
from app import to_tensor
from app.errors import OperatorError


def test_a_hook_sees_and_may_replace_the_gradient_of_a_value_in_between():
    x = leaf(2.0)
    y = x * 3.0
    seen: list[Any] = []
    first = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10.0)
    (y * y).backward(retain_graph=True)
    assert (seen, x.grad.tolist()) == ([[12.0]], [360.0])
    assert (first.remove(), first.remove()) == (True, False)
    assert app.grad(y * 1.0, x)[0].tolist() == [30.0]
    assert len(seen) == 1


def test_hooks_of_leaves_are_called_once_for_gradients_of_inputs_alone():
    x = app.ones([1])
    x.stop_gradient = False
    x.register_hook(lambda g: g * 10.0)
    app.autograd.backward([(x * 2.0).sum()], inputs=[x])
    assert x.grad.tolist() == [20.0]
    assert app.grad((x * 2.0).sum(), x)[0].tolist() == [2.0]


def test_views_of_one_memory_keep_gradients_of_their_own():
    base = leaf(1.0, 1.0) * 1.0
    view, other = base[:], base[:]
    for value in (view, other, base):
        value.retain_grads()
    (view + other * 3.0).sum().backward()
    assert (view.grad.tolist(), other.grad.tolist(), base.grad.tolist()) == ([1, 1], [3, 3], [4, 4])


def test_a_value_without_gradient_has_none_to_hook_or_to_retain():
    x = to_tensor([1.0])
    with pytest.raises(OperatorError, match="cannot have a gradient hook"):
        x.register_hook(print)
    x.retain_grads()
    assert x.grad is None


def run_with_hook(returned: Any, where: str) -> None:
    """Run a backward pass with a hook that returns a value."""
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
    ("returned", "message"),
    [
        (app.ones([3]), r"changed the size of a gradient of shape \[2\]: it returned shape \[3\]"),
        (app.ones([1]), r"changed the size of a gradient of shape \[2\]: it returned shape \[1\]"),
        (app.ones([2], "float64"), "changed the type of a gradient of float32: it returned float64"),
        (3.0, "returned a float, expected a Tensor, or None"),
        (np.ones(2), "returned a ndarray, expected a Tensor, or None"),
    ],
)
def test_a_hook_that_returns_no_such_gradient_is_an_error(returned: Any, message: str, where: str):
    with pytest.raises(OperatorError, match=rf"hook '.*<lambda>' \(.*test_hooks.py:\d+\) .*{message}"):
        run_with_hook(returned, where)
