"""Backward passes over eager values: what reaches `.grad`, what `grad` gives, and what is kept meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from leaves import leaf

import app
from app import grad, to_tensor
from app.errors import OperatorError, ShapeError

# backward()


def test_gradients_reach_leaves_and_no_other_tensors():
    x, frozen = leaf(1.0, 2.0), to_tensor([3.0, 4.0], "float64")
    hidden = x * frozen
    hidden.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert hidden.grad is None
    assert frozen.grad is None
    assert x.grad.is_leaf


def test_backward_adds_to_a_gradient_that_was_set_to_a_result_or_to_memory_that_cannot_be_written():
    x = to_tensor([1.0, 2.0], stop_gradient=False)
    for given in (x * 2, app.Tensor(np.broadcast_to(np.float32(2), (2,)))):
        x.grad = given
        before = given.numpy().copy()
        (x * 3).sum().backward()
        assert x.grad.tolist() == (before + 3).tolist()
        assert given.tolist() == before.tolist()


def test_a_second_backward_adds_to_the_gradient():
    x = leaf(3.0)
    for times in (1, 2, 3):
        (x * x).sum().backward()
        assert x.grad.tolist() == [6.0 * times]
    x.clear_gradient(False)
    assert x.grad is None


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_that_is_cleared_is_zero_unless_it_is_to_be_forgotten(create_graph: bool):
    x = leaf(3.0)
    x.clear_grad()
    assert x.grad is None
    (x * x).sum().backward(create_graph=create_graph)
    x.clear_grad()
    assert (x.grad.tolist(), x.grad.is_leaf) == ([0.0], True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0]
    x.clear_gradient()
    assert x.grad.tolist() == [0.0]
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None


def test_one_tensor_as_both_inputs_of_an_operator():
    x = leaf(2.0, 3.0)
    app.matmul(x, x).backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_a_leaf_is_its_own_gradient():
    x = leaf(2.0, 3.0)
    x.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_start_weighs_the_elements():
    x = leaf(2.0, 3.0)
    (x * x).backward(to_tensor([10.0, 100.0]))
    assert x.grad.tolist() == [40.0, 600.0]
    assert x.grad.dtype == "float64"


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("start", [2.0, [2.0], np.array([2], "int64"), np.array([2.0], "float16")])
def test_a_start_may_be_anything_that_becomes_an_array(start: Any, create_graph: bool):
    x = leaf(3.0, dtype="float32")
    y = (x * x).sum() if isinstance(start, float) else x * x
    (found,) = grad(y, x, [start], create_graph=create_graph)
    assert (found.tolist(), found.dtype) == ([12.0], "float32")


def test_the_gradient_does_not_share_memory_with_the_array_that_it_started_from():
    x, start = leaf(1.0, 2.0), np.array([1.0, 1.0])
    (x + 0.0).backward(start)
    start[:] = 7.0
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_start_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"of a Tensor of shape \[2\] cannot have shape \[3\]"):
        leaf(1.0, 2.0).backward(np.ones(3))


def test_as_many_starts_as_tensors():
    x = leaf(1.0)
    with pytest.raises(OperatorError, match="2 tensors, but 1 gradient"):
        app.autograd.backward([x * 2, x * 3], [to_tensor([1.0])])
    with pytest.raises(OperatorError, match="1 tensor, but 2 gradients"):
        grad(x * 2, x, [None, None])


def test_backward_of_several_tensors_at_once():
    x = leaf(2.0)
    y, z = x * x, x * 3.0
    app.autograd.backward([y, z, y], [None, to_tensor([10.0]), to_tensor([100.0])])
    assert x.grad.tolist() == [4.0 + 30.0 + 400.0]


def test_backward_of_what_wants_no_gradient_does_nothing_and_says_so():
    x = to_tensor([1.0])
    with pytest.warns(UserWarning, match="backward from a Tensor with stop_gradient=True does nothing"):
        (x * 2).backward()
    assert x.grad is None
    with pytest.raises(OperatorError, match="backward from a Tensor with stop_gradient=True"):
        grad(x * 2, x)


def test_results_that_are_no_floats_have_no_gradient():
    x = leaf(1.0, 2.0)
    assert (x > 1).stop_gradient
    assert x.argmax().stop_gradient
    assert x.astype("int64").stop_gradient


def test_an_operator_without_gradient_stops_it():
    x = leaf(1.0)
    assert app.ones_like(x).stop_gradient
    (x + app.ones_like(x)).backward()
    assert x.grad.tolist() == [1.0]


def test_gradients_of_mixed_types_meet_in_the_type_of_each_leaf():
    x, y = leaf(2.0, dtype="float32"), leaf(3.0)
    (x * y + x).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == ("float32", "float64")


def test_some_outputs_unused():
    x = leaf(1.0, 2.0, 3.0)
    first, _, third = app.split(x, 3)
    (first + 10 * third).backward()
    assert x.grad.tolist() == [1.0, 0.0, 10.0]


def test_thousands_of_operators_in_a_row():
    x = y = leaf(1.0)
    for _ in range(5_000):
        y = y + 1.0
    y.backward()
    assert x.grad.tolist() == [1.0]


# retain_graph


def test_a_graph_is_freed_by_backward():
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(OperatorError, match=r"operator multiply: .* freed by an earlier backward.*retain_graph=True"):
        y.backward()


def test_a_graph_is_freed_by_grad():
    x = leaf(2.0)
    y = x * x
    grad(y, x)
    with pytest.raises(OperatorError, match="freed by an earlier backward"):
        grad(y, x)


def test_a_graph_that_is_retained_serves_again():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    assert [g.tolist() for g in grad(y, x, retain_graph=True)] == [[4.0]]
    y.backward()
    assert x.grad.tolist() == [8.0]


def test_create_graph_retains():
    x = leaf(2.0)
    y = x**3
    first = grad(y, x, create_graph=True)
    assert grad(y, x)[0].tolist() == first[0].tolist() == [12.0]


def test_what_is_freed_on_one_side_leaves_the_other():
    x = leaf(2.0)
    left, right = (x * x).sum(), (x * x * x).sum()
    left.backward()
    right.backward()
    assert x.grad.tolist() == [4.0 + 12.0]
