"""Backward passes over eager values: what reaches `.grad`, what `grad` gives, and what is kept meanwhile."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import app
from app import Tensor, grad, to_tensor
from app.errors import OperatorError, ShapeError


def leaf(*numbers: float, dtype: str = "float64") -> Tensor:
    return to_tensor(list(numbers), dtype, stop_gradient=False)


# backward()


def test_gradients_reach_leaves_and_no_other_tensors():
    x, frozen = leaf(1.0, 2.0), to_tensor([3.0, 4.0], "float64")
    hidden = x * frozen
    hidden.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert hidden.grad is None
    assert frozen.grad is None
    assert x.grad.is_leaf


def test_a_second_backward_adds_to_the_gradient():
    x = leaf(3.0)
    for times in (1, 2, 3):
        (x * x).sum().backward()
        assert x.grad.tolist() == [6.0 * times]
    x.clear_grad()
    assert x.grad is None


def test_a_value_that_is_used_in_several_places_gets_the_sum():
    x = leaf(0.5)
    y = x.exp()
    (y * y + y * x + x).sum().backward()
    e = np.exp(0.5)
    np.testing.assert_allclose(x.grad.numpy(), [2 * e * e + e * 0.5 + e + 1])


def test_one_tensor_as_both_inputs_of_an_operator():
    x = leaf(2.0, 3.0)
    app.matmul(x, x).backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_a_leaf_is_its_own_gradient():
    x = leaf(2.0, 3.0)
    x.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_without_a_start_each_element_counts_once():
    x = leaf(2.0, 3.0)
    (x * x).backward()
    assert x.grad.tolist() == [4.0, 6.0]


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
    x = leaf(1.5)
    assert app.floor_divide(x, 1.0).stop_gradient
    (x + app.floor_divide(x, 1.0)).backward()
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


def test_derivatives_of_every_order():
    x = leaf(0.3)
    y, expected = x.sin(), [np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin]
    for derivative in expected:
        (y,) = grad(y, x, create_graph=True)
        np.testing.assert_allclose(y.numpy(), [derivative(0.3)], rtol=1e-12)


def test_a_gradient_penalty():
    w = leaf(1.0, -2.0)
    x = leaf(0.5, 0.25)
    (slope,) = grad((w * x * x).sum(), x, create_graph=True)
    (slope * slope).sum().backward()
    # slope = 2wx, so that its square has the derivative 8wx² by w and 8w²x by x
    np.testing.assert_allclose(w.grad.numpy(), [2.0, -1.0])
    np.testing.assert_allclose(x.grad.numpy(), [4.0, 8.0])


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


# Changing values


def test_detach_shares_numbers_and_stops_gradients():
    x = leaf(2.0)
    y = (x * x).detach()
    assert (y.tolist(), y.stop_gradient, y.is_leaf) == ([4.0], True, True)
    (x * y).backward()
    assert x.grad.tolist() == [4.0]


def test_clone_lets_gradients_through_and_has_numbers_of_its_own():
    x = leaf(2.0)
    y = x.clone()
    y.backward()
    assert x.grad.tolist() == [1.0]
    with app.no_grad():
        y += 1
    assert (x.tolist(), y.tolist()) == ([2.0], [3.0])


def test_a_leaf_cannot_be_changed_in_place_while_gradients_are_recorded():
    x = leaf(2.0)
    for change in (lambda: x.__iadd__(1), lambda: x.__setitem__(0, 1)):
        with pytest.raises(OperatorError, match=r"app\.no_grad\(\)"):
            change()
    assert x.tolist() == [2.0]


def test_a_leaf_can_be_changed_in_place_without_recording():
    x = leaf(2.0, 3.0)
    same = x
    with app.no_grad():
        x -= 0.5
        x[0] = 9.0
    assert x is same
    assert (x.tolist(), x.is_leaf, x.stop_gradient) == ([9.0, 2.5], True, False)


def test_a_value_changed_in_place_takes_the_place_of_the_result():
    x = leaf(2.0)
    y = x * x
    before = y
    y *= x
    y += 1.0
    assert y is before
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_a_constant_changed_in_place_by_a_value_with_gradient_gets_one():
    x, total = leaf(2.0), to_tensor([1.0], "float64")
    total += x * x
    total.backward()
    assert x.grad.tolist() == [4.0]


def test_a_change_in_place_keeps_the_type_of_the_value_and_of_its_gradient():
    x, total = leaf(2.0), to_tensor([1.0], "float32")
    total += x * x
    assert total.dtype == "float32"
    total.backward()
    assert (x.grad.tolist(), x.grad.dtype) == ([4.0], "float64")


def test_backward_refuses_numbers_that_were_changed_since():
    x, y = leaf(2.0), leaf(5.0)
    z = x * y
    with app.no_grad():
        y += 1
        y[0] = 100.0
        y.set_value([50.0])
    found = "tensor_version:3 != wrapper_version_snapshot:0"
    with pytest.raises(RuntimeError, match=f"operator multiply: its input 1.*modified by an inplace.*{found}"):
        z.backward()


def test_stop_gradient_can_be_set_before_use():
    x = to_tensor([2.0])
    x.stop_gradient = False
    (x * x).backward()
    assert x.grad.tolist() == [4.0]


# What is kept, and for how long


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Only reference counts free memory meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def network(x: Tensor) -> Tensor:
    hidden = app.matmul(x, x).relu() + x
    first, second = app.split(hidden, 2)
    return app.concat([first.exp(), second]).softmax()[0].sum()


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("then", ["nothing", "backward", "grad", "create_graph", "retained"])
def test_dropping_the_result_frees_nodes_and_arrays_at_once(then: str):
    x = to_tensor(np.eye(4), stop_gradient=False)
    hidden = x * 2.0
    kept = weakref.ref(hidden._array), weakref.ref(hidden._node)
    y = network(hidden)
    first = None
    if then == "backward":
        y.backward()
    elif then == "grad":
        first = grad(y, x)
    elif then == "create_graph":
        first = grad(y, x, create_graph=True)
        grad(first[0].sum(), x, retain_graph=True)
    elif then == "retained":
        y.backward(retain_graph=True)
    assert kept[1]() is not None
    del hidden, y, first
    assert [ref() for ref in kept] == [None, None]
    x.grad = None
    alive = weakref.ref(x)
    del x
    assert alive() is None


@pytest.mark.usefixtures("without_collector")
def test_backward_frees_saved_arrays_while_the_result_lives():
    x = leaf(2.0)
    hidden = x.exp()
    saved = weakref.ref(hidden._array)
    y = hidden.sin().sum()
    del hidden
    assert saved() is not None
    y.backward()
    assert saved() is None
    assert y.item() == pytest.approx(np.sin(np.exp(2.0)))


@pytest.mark.usefixtures("without_collector")
def test_values_that_no_gradient_rule_reads_are_not_kept():
    x = leaf(2.0)
    hidden = x * 3.0
    array = weakref.ref(hidden._array)
    y = (hidden + 1.0).sum()
    del hidden
    assert array() is None
    y.backward()
    assert x.grad.tolist() == [3.0]


@pytest.mark.usefixtures("without_collector")
def test_an_error_in_a_backward_pass_keeps_nothing_alive():
    x = leaf(2.0)
    y = x * x
    y.backward()
    node = weakref.ref(y._node)
    with pytest.raises(OperatorError):
        y.backward()
    del y
    assert node() is None


@pytest.mark.usefixtures("without_collector")
def test_what_is_not_recorded_keeps_nothing():
    x = leaf(2.0)
    with app.no_grad():
        hidden = x.exp()
        array = weakref.ref(hidden._array)
        y = hidden.sin()
    assert y.is_leaf
    del hidden
    assert array() is None


def test_a_long_chain_is_freed_without_recursion():
    y = leaf(1.0)
    for _ in range(20_000):
        y = y + 1.0
    node = weakref.ref(y._node)
    del y
    assert node() is None
