"""What changing, copying and detaching values does to gradients."""

from __future__ import annotations

import pytest
from leaves import leaf

import app
from app import to_tensor
from app.errors import OperatorError


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
