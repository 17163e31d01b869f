"""Changes in place: what shares the memory sees them, versions count them, and gradients flow through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import Tensor, to_tensor
from app.errors import InPlaceError


def leaf(*numbers: float) -> Tensor:
    return to_tensor(list(numbers), "float64", stop_gradient=False)


def test_versions_count_changes_of_the_memory():
    x = app.zeros([2, 3])
    row, flat, copy = x[0], x.reshape([6]), x.clone()
    assert x.inplace_version == 0
    row += 1
    flat.add_(to_tensor(1.0))
    assert [t.inplace_version for t in (x, row, flat, copy)] == [2, 2, 2, 0]
    assert x.tolist() == [[2.0] * 3, [1.0] * 3]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (app.transpose, [[2.0, 2.0], [2.0, 2.0]]),
        (lambda x: app.split(x, 2)[1], [[0.0, 0.0], [2.0, 2.0]]),
        (lambda x: x[1:], [[0.0, 0.0], [2.0, 2.0]]),
    ],
)
def test_gradients_of_a_view_follow_a_later_change_of_its_value(view: Any, expected: Any):
    x = to_tensor([[1.0, 2.0], [3.0, 4.0]], "float64", stop_gradient=False)
    value = x * 1.0
    seen = view(value)
    value.scale_(2.0)
    seen.sum().backward()
    assert x.grad.tolist() == expected


def test_the_version_of_freed_memory_is_not_inherited():
    for _ in range(50):
        x = app.zeros([1000])
        assert x.inplace_version == 0
        x.fill_(3.0)
        assert x.inplace_version == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x.exp_(), np.exp([0.5, 2.0])),
        (lambda x: x.add_(to_tensor(1.0, "float64")), [1.5, 3.0]),
        (lambda x: x.scale_(3.0, 1.0), [2.5, 7.0]),
        (lambda x: x.clip_(max=1.0), [0.5, 1.0]),
        (lambda x: x.fill_(7.0), [7.0, 7.0]),
        (lambda x: x.zero_(), [0.0, 0.0]),
        (lambda x: x.copy_(to_tensor([1.0, 9.0])), [1.0, 9.0]),
        (lambda x: x.unsqueeze_(0), [[0.5, 2.0]]),
    ],
)
def test_operators_have_a_method_that_changes_the_value_itself(change: Any, expected: Any):
    x = to_tensor([0.5, 2.0], "float64")
    assert change(x) is x
    np.testing.assert_allclose(x.numpy(), expected)
    assert x.inplace_version == 1


def test_scalars_that_were_computed_without_recording_can_be_changed():
    for _ in range(3):  # the first call of an operator takes another way than those that follow
        with app.no_grad():
            found = [to_tensor(1.0) * to_tensor(2.0), 3.0 - to_tensor(1.0), to_tensor(4.0) / 2.0]
        assert [x.item() for x in found] == [2.0, 2.0, 2.0]
        assert [x.zero_().item() for x in found] == [0.0, 0.0, 0.0]


def test_the_gradient_of_a_scalar_can_be_changed_after_it_was_added_to_a_constant_one():
    x = to_tensor(2.0, stop_gradient=False)
    x.grad = Tensor(np.broadcast_to(np.float32(1.0), ()))  # read-only memory
    (x * 3.0).backward()
    assert x.grad.item() == 4.0
    with app.no_grad():
        assert x.grad.zero_().item() == 0.0


def test_gradients_flow_through_a_change_in_place():
    x = leaf(0.5, 2.0)
    y = x * 3.0
    y.exp_().multiply_(x)
    y.sum().backward()
    e = np.exp([1.5, 6.0])
    np.testing.assert_allclose(x.grad.numpy(), e + 3 * e * [0.5, 2.0])


def test_gradients_flow_through_a_change_of_a_view():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1.0
    square, last = y.reshape([2, 2]), y[3]
    square[0] *= 10.0
    last.multiply_(x[0])
    (y * y).sum().backward()
    assert y.tolist() == [10.0, 20.0, 3.0, 4.0]
    np.testing.assert_allclose(x.grad.numpy(), [200.0 + 2 * 4.0 * 4.0, 400.0, 6.0, 8.0])


def test_a_view_stands_for_the_changed_value():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    first = y[0]
    y *= 5.0
    first.backward()
    assert first.item() == 5
    assert x.grad.tolist() == [5.0, 0.0]


@pytest.mark.parametrize("index", [0, slice(0, 1), [0], np.array([True, False])])
def test_gradients_flow_into_and_around_a_part_that_is_replaced(index: Any):
    x, value = leaf(1.0, 2.0), leaf(7.0)
    y = x * 3.0
    y[index] = value[0] * 2.0
    y.sum().backward()
    assert y.tolist() == [14.0, 6.0]
    assert (x.grad.tolist(), value.grad.tolist()) == ([0.0, 3.0], [2.0])


def test_second_derivatives_through_a_part_that_is_replaced():
    x = leaf(2.0, 3.0)
    y = x * 1.0
    y[0] = x[1] ** 3
    (first,) = app.grad(y.sum(), x, create_graph=True)
    (second,) = app.grad(first.sum(), x)
    assert (first.tolist(), second.tolist()) == ([0.0, 28.0], [0.0, 18.0])


@pytest.mark.parametrize("error", [RuntimeError, ValueError, InPlaceError])
def test_a_leaf_and_its_views_are_not_changed_while_gradients_are_recorded(error: type[Exception]):
    x = app.zeros([2])
    view = x[:1]
    x.stop_gradient = False
    for change in (lambda: x.add_(x), lambda: view.fill_(1.0), lambda: x.unsqueeze_(0)):
        with pytest.raises(error, match=r"a leaf Tensor with stop_gradient=False"):
            change()
    with app.no_grad():
        view.fill_(1.0)
    assert x.tolist() == [1.0, 0.0]


def test_only_what_a_gradient_reads_must_stay_as_it_was():
    x = leaf(2.0)
    y = x * 3.0
    kept, read = y + 1.0, y * y
    y += 1.0
    kept.backward()
    assert x.grad.tolist() == [3.0]
    with pytest.raises(InPlaceError, match="tensor_version:1 != wrapper_version_snapshot:0"):
        read.backward()


def test_shapes_alone_may_be_asked_of_what_was_changed():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    total = y.reshape([2, 1]).sum() + y.astype("float32").mean()
    y.zero_()
    total.backward()
    assert x.grad.tolist() == [1.5, 1.5]


def test_an_expanded_value_gets_memory_of_its_own_when_it_is_changed():
    x = to_tensor([1.0])
    wide = x.expand([3])
    wide[0] = 5.0
    assert (wide.tolist(), x.tolist()) == ([5.0, 1.0, 1.0], [1.0])


def test_the_gradient_of_a_leaf_shares_memory_with_nothing_and_grows_in_place():
    x, y, start = leaf(1.0), leaf(2.0), to_tensor([1.0], "float64")
    (x + y).backward(start)
    same = x.grad
    (x * 3.0).backward()
    assert (same.tolist(), y.grad.tolist(), start.tolist()) == ([4.0], [1.0], [1.0])
    assert x.grad is same


def test_detach_shares_numbers_and_clone_lets_gradients_through():
    x = leaf(2.0)
    detached, cloned = (x * x).detach(), x.clone()
    assert (detached.tolist(), detached.stop_gradient, detached.is_leaf) == ([4.0], True, True)
    (x * detached + cloned).backward()
    assert x.grad.tolist() == [5.0]
    with app.no_grad():
        x -= 0.5
        x[0] += 7.0
    assert (x.tolist(), cloned.tolist(), x.is_leaf, x.stop_gradient) == ([8.5], [2.0], True, False)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_constant_that_takes_a_value_with_a_gradient_has_one_and_keeps_its_type(dtype: str):
    x, total = leaf(2.0), to_tensor([1.0], dtype)
    total += x * x
    total.backward()
    assert (total.dtype, x.grad.tolist(), x.grad.dtype) == (dtype, [4.0], "float64")
