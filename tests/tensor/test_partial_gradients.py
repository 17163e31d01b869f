"""`app.grad`: gradients of some values with respect to others, and derivatives of every order."""

from __future__ import annotations

from typing import Any

import pytest
from leaves import leaf

import app
from app import grad, to_tensor
from app.errors import OperatorError

# grad()


def test_grad_leaves_no_gradient_behind():
    x = leaf(2.0)
    assert grad((x * x).sum(), [x])[0].tolist() == [4.0]
    assert x.grad is None


def test_grad_with_respect_to_a_value_in_between():
    x = leaf(2.0)
    y = x * x
    z = (y * y).sum()
    by_y, by_x = grad(z, [y, x])
    assert (by_y.tolist(), by_x.tolist()) == ([8.0], [32.0])


def test_grad_with_respect_to_the_output_itself():
    x = leaf(2.0, 5.0)
    y = x * x
    assert grad(y, y, retain_graph=True)[0].tolist() == [1.0, 1.0]
    assert [g.tolist() for g in grad([y, y], [y, x])] == [[2.0, 2.0], [8.0, 20.0]]


def test_grad_walks_back_no_further_than_its_inputs():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=False)
    z = y * y
    assert grad(z, y)[0].tolist() == [8.0]


def test_grad_frees_only_what_it_walked():
    x = leaf(2.0)
    y = x * x
    assert grad(y * y, y)[0].tolist() == [8.0]
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_one_of_several_outputs_as_input_of_grad():
    x = leaf(1.0, 2.0, 3.0)
    first, _, third = app.split(x, 3)
    found = grad((first * third).sum(), [third, first, x])
    assert [g.tolist() for g in found] == [[1.0], [3.0], [3.0, 0.0, 1.0]]


def test_an_unused_input_is_an_error_unless_it_is_allowed():
    x, unused = leaf(2.0), leaf(1.0, 2.0)
    with pytest.raises(OperatorError, match=r"input 1 of grad, of shape \[2\], was not used .* allow_unused=True"):
        grad(x * x, [x, unused])
    found = grad(x * x, [x, unused], allow_unused=True)
    assert found[0].tolist() == [4.0]
    assert found[1] is None


def test_no_gradient_flows_through_no_grad_vars():
    x = leaf(2.0)
    hidden = x * x
    assert grad(hidden + x, x, no_grad_vars=[hidden], retain_graph=True)[0].tolist() == [1.0]
    assert grad(hidden, x, no_grad_vars=hidden, allow_unused=True, retain_graph=True) == [None]
    assert grad(hidden + x, x)[0].tolist() == [5.0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"inputs": [None]}, "elements of inputs must be Tensors, but element 0 is a NoneType"),
        ({"inputs": None}, "inputs should not be None"),
        ({"inputs": []}, "inputs cannot be empty"),
        ({"outputs": [None]}, "elements of outputs must be Tensors, but element 0 is a NoneType"),
        ({"outputs": []}, "outputs cannot be empty"),
        ({"inputs": 3}, "elements of inputs must be Tensors, but element 0 is a int"),
        ({"grad_outputs": [None, None]}, "1 tensor, but 2 gradients for them"),
        ({"no_grad_vars": ["a"]}, "elements of no_grad_vars must be Tensors, but element 0 is a str"),
        ({"only_inputs": False}, "only_inputs=False is not supported"),
    ],
)
def test_a_call_that_names_no_tensors_fails_an_assertion_that_says_why(arguments: Any, words: str):
    x = leaf(2.0)
    with pytest.raises(AssertionError, match=words):
        grad(**{"outputs": x * x, "inputs": x, **arguments})


def test_a_tensor_of_zero_is_among_the_no_grad_vars():
    x = leaf(0.0)
    hidden = x * 1.0
    assert grad(hidden + x, x, no_grad_vars=hidden)[0].tolist() == [1.0]


def test_gradients_that_can_be_differentiated_want_a_gradient():
    x = leaf(2.0)
    arriving = to_tensor([1.0])
    for y in (x * x, x * 2.0, x + 1.0):
        assert grad(y, x, retain_graph=True)[0].stop_gradient
        assert not grad(y, x, create_graph=True)[0].stop_gradient
        assert not grad(y, x, arriving, create_graph=True)[0].stop_gradient
    assert arriving.stop_gradient


def test_one_output_blocked_and_another_not():
    x = leaf(2.0, 3.0)
    first, second = app.split(x, 2)
    assert grad(first * second, x, no_grad_vars=[first])[0].tolist() == [0.0, 2.0]


def test_grad_outputs_weigh_the_outputs():
    x = leaf(2.0)
    found = grad([x * x, x * 3.0], x, grad_outputs=[None, to_tensor([10.0])])
    assert found[0].tolist() == [4.0 + 30.0]


def test_gradients_flow_into_grad_outputs_with_create_graph():
    x, weight = leaf(2.0), leaf(5.0)
    (first,) = grad(x * x, x, grad_outputs=[weight], create_graph=True)
    first.backward()
    assert (x.grad.tolist(), weight.grad.tolist()) == ([10.0], [4.0])


def test_without_create_graph_a_gradient_is_a_constant():
    x = leaf(2.0)
    (first,) = grad(x**3, x)
    assert first.stop_gradient
    with pytest.raises(OperatorError, match="stop_gradient=True"):
        grad(first, x)


def test_the_mode_outside_does_not_change_a_backward_pass():
    x = leaf(2.0)
    y = x**3
    with app.no_grad():
        (first,) = grad(y, x, create_graph=True)
        assert not app.is_grad_enabled()
    assert grad(first, x)[0].tolist() == [12.0]
