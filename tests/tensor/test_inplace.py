"""Changes in place: what shares the memory sees them, versions count them, and gradients flow through them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from leaves import leaf

import app
from app import Tensor, to_tensor
from app.errors import DtypeError, InPlaceError, OperatorError, ShapeError

X = np.arange(6.0).reshape(2, 3)


def test_views_see_a_change_and_versions_count_it():
    x = to_tensor(X)
    views = [x.detach(), x.reshape([6]), x[0], x.T]
    copies = [x.clone(), to_tensor(x), x + 0]
    assert x.inplace_version == 0
    x[:] = -1
    assert all((v.numpy() == -1).all() for v in views)
    views[2].add_(1)
    assert x.tolist() == [[0.0] * 3, [-1.0] * 3]
    x.set_value(X * 0)
    assert all((v.numpy() == 0).all() for v in views)
    assert all((c.numpy() == X).all() for c in copies)
    assert {t.inplace_version for t in (x, *views)} == {3}
    assert {t.inplace_version for t in copies} == {0}


def test_the_version_of_freed_memory_is_not_inherited():
    for _ in range(50):
        x = app.zeros([1000])
        assert x.inplace_version == 0
        x.fill_(3.0)
        assert x.inplace_version == 1


def test_an_expanded_value_gets_memory_of_its_own_when_it_is_changed():
    x = to_tensor([1.0])
    wide = x.expand([3])
    wide[0] = 5.0
    assert (wide.tolist(), x.tolist()) == ([5.0, 1.0, 1.0], [1.0])


def test_an_expanded_leaf_gets_memory_of_its_own_when_it_is_changed():
    leaf_of_one = app.ones([3])
    leaf_of_one.stop_gradient = False
    leaf_of_one.expand([2, 3]).add_(app.ones([3])).sum().backward()
    assert leaf_of_one.grad.tolist() == [2.0, 2.0, 2.0]


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
        (lambda x: x.add_([1.0, 3.0]), [1.5, 5.0]),
        (lambda x: x.subtract_(np.array([1.0, 3.0])), [-0.5, -1.0]),
        (lambda x: x.multiply_(2), [1.0, 4.0]),
        (lambda x: x.divide_(4.0), [0.125, 0.5]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_methods_and_operators_change_the_value_itself(change: Any, expected: Any, dtype: str):
    x = to_tensor([0.5, 2.0], dtype)
    assert change(x) is x
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
    assert (x.inplace_version, x.dtype) == (1, dtype)


def test_shapes_and_types_do_not_change_in_place():
    x, n = app.zeros([2]), to_tensor([1, 2])
    x.set_value([1, 2])
    assert (x.tolist(), x.dtype) == ([1.0, 2.0], "float32")
    x.set_value(to_tensor([3.5, 4.5], "float64"))
    assert (x.tolist(), x.dtype) == ([3.5, 4.5], "float32")
    with pytest.raises(ShapeError, match=r"of shape \[2\] got shape \[3\]"):
        x.set_value([1, 2, 3])
    with pytest.raises(DtypeError, match="set_value: the Tensor is int64, and was given float64; nothing was changed"):
        to_tensor([1, 2]).set_value([1.5, 2.0])
    with pytest.raises(ShapeError, match=r"of shape \[2\] cannot be changed in place to shape \[2, 2\]"):
        x.add_(np.ones((2, 2)))
    with pytest.raises(DtypeError, match="a Tensor of int64 cannot be changed in place to float32"):
        n.add_(0.5)
    assert (x.tolist(), n.tolist()) == ([3.5, 4.5], [1, 2])


@pytest.mark.parametrize(
    "index", [0, (1, 2), slice(None), (..., slice(0, 2)), [1, 0], X > 2, ([0, 1], [1, 2]), np.int64(1), True, False]
)
def test_assignment_to_an_index_agrees_with_numpy(index: Any):
    x, expected = to_tensor(X), X.copy()
    x[index] = -1
    expected[index] = -1
    np.testing.assert_array_equal(x.numpy(), expected)
    if isinstance(index, (list, np.ndarray)):
        x[to_tensor(index)] = to_tensor([7.0])
        expected[index] = 7.0
        np.testing.assert_array_equal(x.numpy(), expected)


def test_scalars_can_be_changed_in_place():
    for _ in range(3):  # the first call of an operator takes another way than those that follow
        with app.no_grad():
            results = [to_tensor(1.0) * to_tensor(2.0), 3.0 - to_tensor(1.0), to_tensor(4.0) / 2.0]
        assert [x.item() for x in results] == [2.0, 2.0, 2.0]
        assert [x.zero_().item() for x in results] == [0.0, 0.0, 0.0]
    x = to_tensor(2.0, stop_gradient=False)
    x.grad = Tensor(np.broadcast_to(np.float32(1.0), ()))  # read-only memory
    (x * 3.0).backward()
    assert x.grad.item() == 4.0
    with app.no_grad():
        assert x.grad.zero_().item() == 0.0


# Gradients


VIEWS: list[Any] = [
    app.transpose,
    lambda x: app.split(x, 2)[1],
    lambda x: x[1:],
    lambda x: x.reshape([4]),
    lambda x: x.expand([3, 2, 2]),
    lambda x: app.expand_as(x, app.zeros([3, 2, 2])),
    lambda x: x.broadcast_to([2, 2]),
]
REFUSED = r"is a view of the same memory.*x = x\.clone\(\)"


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("view", VIEWS)
def test_a_value_is_not_changed_while_gradients_are_recorded_and_it_has_a_view(view: Any, recorded: bool):
    x = to_tensor([[1.0, 2.0], [3.0, 4.0]], "float64", stop_gradient=False)
    value = x * 1.0
    with nullcontext() if recorded else app.no_grad():
        seen = view(value)
    for change in (lambda: value.scale_(2.0), lambda: value.__setitem__(0, 5.0), lambda: value.fill_(x[0, 0])):
        with pytest.raises(InPlaceError, match=REFUSED):
            change()
    assert value.tolist() == x.tolist()
    value = value.clone()
    value.scale_(2.0)
    (value + seen.sum()).sum().backward()
    once = np.full((2, 2), 2.0)
    assert x.grad.tolist() == (once + 4 * app.grad(view(x * 1.0).sum(), x)[0].numpy() if recorded else once).tolist()
    del seen
    again = x * 1.0
    view(again)
    again.scale_(2.0)  # the view is gone


@pytest.mark.parametrize("view", VIEWS[:4])
def test_a_view_is_not_changed_while_gradients_are_recorded_and_its_base_is_there(view: Any):
    x = to_tensor([[1.0, 2.0], [3.0, 4.0]], "float64", stop_gradient=False)
    value, weight = x * 1.0, x[0, 0]
    seen = view(value)
    for change in (lambda: seen.scale_(2.0), lambda: seen.__setitem__(0, 5.0), lambda: seen.zero_()):
        with pytest.raises(InPlaceError, match=REFUSED):
            change()
    constant = app.zeros([2, 2], "float64")
    part = view(constant)
    with pytest.raises(InPlaceError, match=REFUSED):
        part.fill_(weight)
    part.fill_(3.0)  # no gradient is concerned
    assert constant[1, 1].item() == 3.0
    del value
    seen.scale_(2.0)
    seen.sum().backward()
    assert x.grad.tolist() == (2 * app.grad(view(x * 1.0).sum(), x)[0].numpy()).tolist()


def test_a_part_that_is_written_to_another_part_is_a_copy():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1.0
    with pytest.raises(InPlaceError, match=r"make the other one a copy \(x\[0\]\.clone\(\)\)"):
        y[1:] = y[:-1]
    y[1:] = y[:-1].clone()
    y[0] += 2.0
    (y * to_tensor([1.0, 10.0, 100.0], "float64")).sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([3.0, 1.0, 2.0], [11.0, 100.0, 0.0])


@pytest.mark.parametrize("index", [slice(None, None, -1), [1, 0], (..., [2, 0, 1])])
def test_a_value_is_written_to_a_part_of_itself_in_another_order(index: Any):
    expected, weights = X.copy(), np.arange(1.0, 7.0).reshape(2, 3)
    expected[index] = X
    x = to_tensor(X, stop_gradient=False)
    y = x * 1.0
    y[index] = y
    (y * weights).sum().backward()
    assert y.tolist() == expected.tolist()
    assert x.grad.tolist() == weights[index].tolist()


def test_a_value_without_axes_is_replaced_and_only_what_replaces_it_has_a_gradient():
    x, y = (to_tensor(number, stop_gradient=False) for number in (2.0, 3.0))
    z = x * x
    z[...] = y * 2.0
    (z * z).backward()
    assert (z.item(), x.grad.item(), y.grad.item()) == (6.0, 0.0, 24.0)


def test_gradients_flow_through_changes_of_a_value():
    x = leaf(0.5, 2.0)
    (x * 3.0).exp_().multiply_(x).sum().backward()
    e = np.exp([1.5, 6.0])
    np.testing.assert_allclose(x.grad.numpy(), e + 3 * e * [0.5, 2.0])


@pytest.mark.parametrize("index", [0, slice(0, 1), [0], np.array([True, False])])
def test_gradients_flow_into_and_around_a_part_that_is_replaced(index: Any):
    x, value = leaf(1.0, 2.0), leaf(7.0)
    y = x * 3.0
    y[index] = value[0] ** 2
    gradients = app.grad(y.sum(), [x, value], create_graph=True)
    assert y.tolist() == [49.0, 6.0]
    assert [g.tolist() for g in gradients] == [[0.0, 3.0], [14.0]]
    assert app.grad(gradients[1].sum(), value)[0].tolist() == [2.0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_constant_changed_in_place_has_a_gradient_and_keeps_its_type(dtype: str):
    x, total = leaf(2.0), to_tensor([1.0], dtype)
    total.add_(x * x)
    total.backward()
    assert (total.dtype, x.grad.tolist(), x.grad.dtype) == (dtype, [4.0], "float64")


@pytest.mark.parametrize("error", [RuntimeError, ValueError, InPlaceError])
def test_a_leaf_and_its_views_are_not_changed_while_gradients_are_recorded(error: type[Exception]):
    x = app.zeros([2])
    view = x[:1]
    x.stop_gradient = False
    changes = [lambda: x.add_(x), lambda: view.fill_(1.0), lambda: x.__setitem__(0, 1.0)]
    for change in changes:
        with pytest.raises(error, match=r"a leaf Tensor with stop_gradient=False.*do it inside opsmith\.no_grad\(\)"):
            change()
    with app.no_grad():
        view.fill_(1.0)
        x[1] = 5.0
        x.subtract_(0.5)
    assert (x.tolist(), x.is_leaf, x.stop_gradient) == ([0.5, 4.5], True, False)


def test_a_value_that_does_not_fit_a_part_is_an_error():
    x = to_tensor(X)
    with pytest.raises(ShapeError, match=r"a part of a Tensor of shape \[2, 3\] cannot be set: .*\(2,\) into"):
        x[0] = app.ones([2])
    assert (x.tolist(), x.inplace_version) == (X.tolist(), 0)


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        (np.ones((2, 3), bool), np.ones((2, 3)), "requires a 0 or 1-dimensional input, input has 2 dimensions"),
        (np.ones((2, 3, 1), bool), 1.0, "too many indices"),
        (np.ones(3, bool), 1.0, "boolean index did not match"),
        (5, 1.0, "index 5 is out of bounds"),
    ],
)
def test_a_mask_or_an_index_that_does_not_fit_is_an_error(index: Any, value: Any, message: str):
    x = to_tensor(X)
    with pytest.raises(OperatorError, match=rf"a part of a Tensor of shape \[2, 3\] cannot be set: .*{message}"):
        x[index if isinstance(index, int) else to_tensor(index)] = value
    assert (x.tolist(), x.inplace_version) == (X.tolist(), 0)


def test_values_that_no_gradient_reads_can_change():
    x = leaf(2.0)
    y = x * 3.0
    shifted, read = y + 1.0, y * y
    of_shapes = y.reshape([1, 1]).sum() + y.astype("float32").mean()
    y.add_(1.0)
    (shifted + of_shapes).backward()
    assert x.grad.tolist() == [9.0]
    with pytest.raises(InPlaceError, match="has been modified by an inplace operation since"):
        read.backward()


@pytest.mark.parametrize("change", ["+= 2.0", "-= 2.0", "*= 2.0", "/= 2.0", "**= 2.0", "+= x"])
def test_an_assignment_with_an_operator_makes_a_new_tensor_as_in_paddle(change: str):
    x = leaf(1.0, 3.0)
    names = {"x": x, "y": x}
    exec(f"y {change}", names)
    y = names["y"]
    assert (y is x, x.tolist(), y.stop_gradient) == (False, [1.0, 3.0], False)
    assert y.tolist() == eval(f"x {change.replace('=', '')}", names).tolist()
    count = to_tensor([1, 2])
    count += 0.5
    assert (count.tolist(), count.dtype) == ([1.5, 2.5], "float32")


@pytest.mark.parametrize(
    ("symbol", "method"), [("+", "add_"), ("-", "subtract_"), ("*", "multiply_"), ("/", "divide_")]
)
def test_an_update_of_a_leaf_that_would_not_change_it_is_an_error(symbol: str, method: str):
    w, same = leaf(1.0, 3.0), to_tensor([1.0])
    with app.no_grad():
        with pytest.raises(
            InPlaceError, match=rf"makes a new Tensor, as in Paddle.*write x\.{method}\(y\) to change x"
        ):
            exec(f"w {symbol}= 0.5", {"w": w})
        same += 1.0
    assert (w.tolist(), same.tolist()) == ([1.0, 3.0], [2.0])


def test_detach_shares_numbers_and_clone_lets_gradients_through():
    x = leaf(2.0)
    detached, cloned = (x * x).detach(), x.clone()
    assert (detached.tolist(), detached.stop_gradient, detached.is_leaf) == ([4.0], True, True)
    (x * detached + cloned).backward()
    assert x.grad.tolist() == [5.0]
    with app.no_grad():
        x.detach().fill_(8.0)
    assert (x.tolist(), cloned.tolist()) == ([8.0], [2.0])


@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
def test_one_element_is_set_to_a_value_of_one_element(shape: list[int]):
    x, value = leaf(1.0, 2.0, 3.0) * 1, to_tensor(np.full(shape, 7.0), stop_gradient=False)
    x[1] = value
    assert x.tolist() == [1, 7, 3]
    (x * to_tensor([10.0, 100.0, 1000.0], "float64")).sum().backward()
    np.testing.assert_array_equal(value.grad.numpy(), np.full(shape, 100.0))


def test_of_elements_written_to_one_place_the_last_remains_and_has_the_gradient():
    weights = to_tensor([10.0, 100.0, 1000.0], "float64")
    for index in ([0, 0, 1], np.array([1, 0, 0])[::-1], to_tensor([0, 0, 1])):
        base, values = leaf(7.0, 8.0, 9.0), leaf(1.0, 2.0, 3.0)
        x = base * 1
        x[index] = values
        assert x.tolist() == [2, 3, 9]
        gradients = app.grad((x * weights).sum(), [base, values])
        assert [g.tolist() for g in gradients] == [[0, 0, 1000], [0, 10, 100]]
    base, value = leaf(7.0, 8.0), leaf(1.0)
    x = base * 1
    x[[1, 1, 1]] = value
    assert app.grad(x.sum(), value)[0].tolist() == [1]
