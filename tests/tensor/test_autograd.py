"""Backward passes over eager values: what reaches `.grad`, what `grad` gives, and what is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from leaves import leaf

import app
from app import grad, to_tensor
from app.errors import DtypeError, GradientError, OperatorError, ShapeError

# backward()


def with_zeros(x: Any, index: Any) -> Any:
    y = x * 2.0
    y[index] = 0.0
    return y


@pytest.mark.parametrize(
    ("function", "array"),
    [
        (lambda x, a: x * a, np.full(4, 3.0)),
        (lambda x, a: a * x, np.full(4, 3.0)),
        (app.maximum, np.full(4, 2.5)),
        (lambda x, a: app.matmul(x, a), np.full((4, 2), 3.0)),
        (lambda x, a: app.where(a, x, x * 2.0), np.array([True, False, True, False])),
        (lambda x, a: x[a], np.array([True, False, True, False])),
        (lambda x, a: x[a], np.array([1, 2])),
        (lambda x, a: x.reshape([2, 2])[a, 0], np.array([1, 1])),
        (app.gather, np.array([1, 2])),
        (with_zeros, np.array([1, 2])),
    ],
    ids=["multiply", "swapped", "maximum", "matmul", "where", "mask", "index", "indices", "gather", "set_item"],
)
def test_a_gradient_uses_the_array_of_numpy_that_the_forward_pass_had(function: Any, array: np.ndarray):
    gradients = []
    for change in (False, True):
        operand, x = array.copy(), to_tensor(np.arange(1.0, 5.0), stop_gradient=False)
        y = function(x, operand)
        if change:
            operand[...] = 0
        y.sum().backward()
        gradients.append(x.grad.tolist())
    assert gradients[0] == gradients[1]


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_add_up_until_they_are_set_to_zero_or_removed(create_graph: bool):
    x = leaf(3.0)
    x.clear_grad()
    assert x.grad is None
    for times in (1, 2):
        (x * x).sum().backward(create_graph=create_graph)
        assert x.grad.tolist() == [6.0 * times]
    x.clear_grad()
    assert (x.grad.tolist(), x.grad.is_leaf) == ([0.0], True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0]
    x.clear_gradient()
    assert x.grad.tolist() == [0.0]
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None


def test_a_leaf_that_stops_gradients_after_it_was_used_is_given_its_gradient_as_in_paddle():
    x = leaf(3.0)
    y = x * x
    x.stop_gradient = True
    y.backward()
    assert x.grad.tolist() == [6.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_grad_that_was_set_to_another_shape_is_an_error(create_graph: bool):
    for wrong in (to_tensor(np.ones([2, 2])), to_tensor(np.ones([1])), 3.0):
        x = leaf(1.0, 2.0)
        x.grad = wrong
        with pytest.raises(ShapeError, match=r"the \.grad of a Tensor of shape \[2\], which was set to a"):
            (x * 2.0).sum().backward(create_graph=create_graph)


def test_a_gradient_shares_no_memory_and_grows_in_place():
    x, array = leaf(1.0, 2.0), np.array([1.0, 1.0])
    (x + 0.0).backward(array)
    array[:] = 7.0
    assert x.grad.tolist() == [1.0, 1.0]
    y, z, start = leaf(1.0), leaf(2.0), to_tensor([1.0], "float64")
    (y + z).backward(start)
    same = y.grad
    (y * 3.0).backward()
    assert (same.tolist(), z.grad.tolist(), start.tolist()) == ([4.0], [1.0], [1.0])
    assert y.grad is same


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("start", [2.0, [2.0], np.array([2], "int64"), np.array([2.0], "float16"), to_tensor([2.0])])
def test_starts_are_converted_to_arrays_of_the_right_type(start: Any, create_graph: bool):
    x = leaf(3.0, dtype="float32")
    y = (x * x).sum() if isinstance(start, float) else x * x
    (gradient,) = grad(y, x, [start], create_graph=create_graph)
    assert (gradient.tolist(), gradient.dtype) == ([12.0], "float32")


def test_backward_from_a_constant_warns_alone_and_is_an_error_beside_others():
    with pytest.warns(
        UserWarning,
        match="backward from a Tensor with stop_gradient=True does nothing.*; make an input with stop_gradient=False",
    ):
        app.ones([1]).backward()
    message = "of tensors does not require grad and does not have a grad_fn"
    with pytest.raises(GradientError, match=f"element 1 {message}"):
        app.autograd.backward([leaf(1.0), app.ones([1])])


# grad()


def test_grad_with_respect_to_some_of_several_outputs():
    x = leaf(1.0, 2.0, 3.0)
    first, _, third = app.split(x, 3)
    gradients = grad((first * third).sum(), [third, first, x], retain_graph=True)
    assert [g.tolist() for g in gradients] == [[1.0], [3.0], [3.0, 0.0, 1.0]]
    assert grad(first * third, x, no_grad_vars=[first])[0].tolist() == [0.0, 0.0, 1.0]


def test_gradients_are_constants_unless_a_graph_is_created():
    x, weight = leaf(2.0), leaf(5.0)
    for y in (x * x, x * 2.0, x + 1.0):
        arriving = to_tensor([1.0])
        assert grad(y, x, retain_graph=True)[0].stop_gradient
        assert not grad(y, x, retain_graph=True, create_graph=True)[0].stop_gradient
        assert not grad(y, x, arriving, create_graph=True)[0].stop_gradient
        assert arriving.stop_gradient
    (first,) = grad(x * x, x, grad_outputs=[weight], create_graph=True)
    first.backward()
    assert (x.grad.tolist(), weight.grad.tolist()) == ([10.0], [4.0])
    (x**3).backward(create_graph=True)
    assert grad(x.grad, x)[0].tolist() == [12.0]


def test_an_unused_input_is_an_error_unless_it_is_allowed():
    x, unused = leaf(2.0), leaf(1.0, 2.0)
    for kind in (GradientError, RuntimeError, ValueError):
        with pytest.raises(kind, match=r"input 1 of grad, of shape \[2\], was not used .* allow_unused=True"):
            grad(x * x, [x, unused])
    gradients = grad(x * x, [x, unused], allow_unused=True)
    assert (gradients[0].tolist(), gradients[1]) == ([4.0], None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": [None]}, "elements of inputs must be Tensors, but element 0 is a NoneType"),
        ({"inputs": None}, "inputs should not be None"),
        ({"inputs": []}, "inputs cannot be empty"),
        ({"outputs": [None]}, "elements of outputs must be Tensors, but element 0 is a NoneType"),
        ({"outputs": []}, "outputs cannot be empty"),
        ({"inputs": 3}, "elements of inputs must be Tensors, but element 0 is a int"),
        ({"no_grad_vars": ["a"]}, "elements of no_grad_vars must be Tensors, but element 0 is a str"),
        ({"grad_outputs": [None, None]}, "1 tensor, but 2 gradients for them"),
    ],
)
def test_wrong_arguments_of_grad_are_assertion_errors(arguments: Any, message: str):
    x = leaf(2.0)
    with pytest.raises(AssertionError, match=message):
        grad(**{"outputs": x * x, "inputs": x, **arguments})


def test_wrong_starts_of_backward_are_errors():
    x = leaf(1.0, 2.0)
    with pytest.raises(ShapeError, match=r"of a Tensor of shape \[2\] cannot have shape \[3\]"):
        x.backward(np.ones(3))
    with pytest.raises(OperatorError, match="2 tensors, but 1 gradient"):
        app.autograd.backward([x * 2, x * 3], [to_tensor([1.0])])
    with pytest.raises(OperatorError, match="backward from a Tensor with stop_gradient=True"):
        grad(to_tensor([1.0]) * 2, x)


def test_the_gradient_of_integers_is_refused_and_not_rounded():
    x = to_tensor([1, 2], stop_gradient=False)
    with pytest.raises(DtypeError, match=r"Tensor of shape \[2\], of int64, would be rounded"):
        (x * 0.5).sum().backward()
    with pytest.raises(DtypeError, match="input 0 of grad, of int64"):
        grad((x * 0.5).sum(), x)
    with pytest.raises(DtypeError, match="of int64"):
        app.jit.to_static(lambda x: (x * 0.5).sum(), backend="reference")(x).backward()
    table = leaf([1.0, 2.0], [3.0, 4.0])
    app.gather(table, to_tensor([0, 1], stop_gradient=False)).sum().backward()  # indices get none in any case
    assert table.grad.numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
