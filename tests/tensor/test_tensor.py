"""What a Tensor does as a Python value: its numbers, its text, indexing, and arithmetic with what is no Tensor."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import app
from app import Tensor, to_tensor
from app.errors import DtypeError, InPlaceError, ShapeError

X = np.arange(6.0).reshape(2, 3)


# Making one


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "float32"),
        ([1, 2], "int64"),
        (True, "bool"),
        ([[1.0], [2]], "float32"),
        (np.float64(1.5), "float64"),
        (np.arange(3, dtype="uint8"), "uint8"),
        (np.ones(2), "float64"),
        (to_tensor(np.ones(2, "float16")), "float16"),
        (range(3), "int64"),
    ],
)
def test_python_floats_get_the_default_type_and_arrays_keep_theirs(data: Any, dtype: str):
    tensor = to_tensor(data)
    assert tensor.dtype == dtype
    assert tensor.shape == list(np.shape(data))
    assert tensor.tolist() == np.asarray(data).tolist()


def test_a_type_can_be_asked_for():
    assert to_tensor([1, 2], dtype="float64").dtype == "float64"
    assert to_tensor([0.0, 2.0], dtype=bool).tolist() == [False, True]


def test_a_tensor_has_numbers_of_its_own():
    array = np.zeros(2)
    tensor, again = to_tensor(array), to_tensor(to_tensor(array))
    array[:] = 1
    assert tensor.tolist() == again.tolist() == [0.0, 0.0]
    tensor.numpy()[:] = 5
    np.asarray(tensor)[:] = 5
    assert tensor.tolist() == [0.0, 0.0]


def test_a_tensor_made_of_a_tensor_is_a_leaf():
    x = to_tensor([1.0], stop_gradient=False)
    y = to_tensor(x * 2, stop_gradient=False)
    y.backward()
    assert (x.grad, y.grad.tolist()) == (None, [1.0])


@pytest.mark.parametrize("data", ["text", None, [1j], np.array([1], "uint16")])
def test_what_is_no_number_is_refused(data: Any):
    with pytest.raises(DtypeError, match="is not an element type; expected one of bool, uint8"):
        to_tensor(data)


# What it says of itself


def test_attributes():
    x = to_tensor(X, stop_gradient=False)
    assert (x.shape, x.ndim, x.dim(), x.size, x.numel(), x.dtype) == ([2, 3], 2, 2, 6, 6, "float64")
    assert (x.is_leaf, x.grad, x.persistable) == (True, None, False)
    assert not (x * 2).is_leaf
    assert x.place == "Place(cpu)"


def test_names_differ_and_can_be_set():
    x, y = to_tensor(1.0), to_tensor(1.0)
    assert x.name == x.name != y.name
    x.name = "mine"
    assert x.name == "mine"


def test_repr():
    assert repr(to_tensor([[1.0, 2.5], [3.0, 4.0]], stop_gradient=False)) == (
        "Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False,\n"
        "       [[1. , 2.5],\n"
        "        [3. , 4. ]])"
    )
    assert repr(to_tensor(3)) == "Tensor(shape=[], dtype=int64, place=Place(cpu), stop_gradient=True,\n       3)"


def test_format():
    assert f"{to_tensor([2.5]):.2f}|{to_tensor(7):>3}" == "2.50|  7"
    assert f"{to_tensor([1, 2])}" == repr(to_tensor([1, 2]))
    assert f"{to_tensor(7)}" == repr(to_tensor(7))
    assert f"{to_tensor([1, 2]):>150}" == repr(to_tensor([1, 2])).rjust(150)


# As a number, a truth value, a sequence


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_tensor_with_one_element_is_a_number(shape: tuple[int, ...]):
    x = to_tensor(np.full(shape, 2.75))
    assert (x.item(), float(x), int(x), bool(x), bool(x * 0)) == (2.75, 2.75, 2, True, False)
    assert isinstance(x.item(), float)
    assert isinstance(to_tensor(np.full(shape, 3)).item(), int)


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
@pytest.mark.parametrize("use", [Tensor.item, float, int, bool, operator.index])
def test_a_tensor_with_several_elements_or_none_is_no_number(shape: tuple[int, ...], use: Any):
    with pytest.raises(ShapeError, match=rf"shape {list(shape)}".replace("[", r"\[")):
        use(app.zeros(shape, "int64"))


def test_whole_numbers_can_be_an_index_and_others_cannot():
    assert [10, 20, 30][to_tensor(1)] == 20
    assert list(range(to_tensor(2))) == [0, 1]
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        range(to_tensor(2.7))


def test_len_and_iteration_go_over_the_first_axis():
    x = to_tensor(X)
    assert len(x) == 2
    assert [row.tolist() for row in x] == X.tolist()
    assert 4.0 in x[1]
    assert 9.0 not in x[1]
    first, second = x
    assert (first.shape, second.tolist()) == ([3], [3.0, 4.0, 5.0])


def test_a_value_without_axes_has_no_length():
    with pytest.raises(ShapeError, match="a scalar has no length"):
        len(to_tensor(1.0))


def test_gradients_flow_through_iteration():
    x = to_tensor(X, stop_gradient=False)
    first, second = x
    (first * 2 + second).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3, [1.0] * 3]


def test_tensors_are_hashed_by_identity():
    x, y = to_tensor(1.0), to_tensor(1.0)
    assert {x: "x", y: "y"}[x] == "x"
    assert len({x, y, x}) == 2


# Arrays


def test_numpy_functions_take_tensors():
    assert np.array_equal(np.exp(to_tensor(X)), np.exp(X))
    assert np.asarray(to_tensor(X), dtype="float32").dtype == "float32"
    assert np.array(to_tensor([1, 2]), copy=True).tolist() == [1, 2]


ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
A, B = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 0.5], [3.0, 1.0]])


@pytest.mark.parametrize("operate", [*ARITHMETIC, *COMPARISONS, operator.matmul])
@pytest.mark.parametrize("other", [B, B.astype("float32"), B[0], np.float64(0.5), np.float32(2)])
def test_an_array_on_either_side_gives_a_tensor(operate: Any, other: Any):
    if operate is operator.matmul and not np.ndim(other):
        other = np.diag([other, other])  # a product of matrices takes no number
    for found, expected in [
        (operate(to_tensor(A), other), operate(A, other)),
        (operate(other, to_tensor(A)), operate(other, A)),
    ]:
        assert isinstance(found, Tensor)
        np.testing.assert_allclose(found.numpy(), expected)


@pytest.mark.parametrize("operate", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("other", [2, 2.0, True, [1, 2]])
def test_a_python_value_on_either_side(operate: Any, other: Any):
    for found, expected in [
        (operate(to_tensor(A), other), operate(A, np.asarray(other, float))),
        (operate(other, to_tensor(A)), operate(np.asarray(other, float), A)),
    ]:
        assert isinstance(found, Tensor)
        np.testing.assert_allclose(found.numpy(), expected)


def test_gradients_flow_past_an_array_on_the_left():
    x = to_tensor(A, stop_gradient=False)
    (B * x + np.float64(3) * x - B @ x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), B + 3 - B.T @ np.ones((2, 2)))


def test_one_sided_operators():
    x = to_tensor([-1.5, 2.0])
    assert (-x).tolist() == [1.5, -2.0]
    assert abs(x).tolist() == [1.5, 2.0]
    flags = to_tensor([True, False])
    assert (~flags).tolist() == [False, True]
    assert (flags & True).tolist() == [True, False]
    assert (flags | flags).tolist() == [True, False]
    assert (flags ^ True).tolist() == [False, True]


def test_operators_are_methods():
    x = to_tensor(X)
    assert x.sum(axis=0).tolist() == x.sum(0).tolist() == app.sum(x, 0).tolist() == [3.0, 5.0, 7.0]
    assert x.max(1, keepdim=True).shape == [2, 1]
    assert x.T.shape == x.t().shape == x.transpose([1, 0]).shape == [3, 2]
    assert x.astype("int32").dtype == x.cast("int32").dtype == "int32"


# Parts


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_an_index_gives_what_numpy_gives(data: st.DataObject):
    array = np.arange(24.0).reshape(2, 3, 4)
    index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True))
    part = to_tensor(array)[index]
    assert part.shape == list(array[index].shape)
    np.testing.assert_array_equal(part.numpy(), array[index])


@pytest.mark.parametrize(
    "index",
    [1, -1, [1, 0, 1], np.array([[1], [0]]), np.int64(1), (np.int64(1), 2), (slice(np.int64(0), 1), np.int32(-1))],
)
def test_an_index_of_whole_numbers(index: Any):
    found = to_tensor(X)[index]
    np.testing.assert_array_equal(found.numpy(), X[index])
    with app.static.program_guard(app.static.Program(), app.static.Program()):
        variable = app.static.data("x", [2, 3], "float64")[index]
        (value,) = app.static.Executor().run(variable.program, {"x": X}, [variable])
    np.testing.assert_array_equal(value, X[index])
    assert variable.shape == X[index].shape


def test_a_tensor_as_index():
    assert to_tensor(X)[to_tensor([1, 1])].tolist() == X[[1, 1]].tolist()
    assert to_tensor(X)[to_tensor(1)].tolist() == X[1].tolist()


ARRAYS: list[Any] = [
    *[X > 2, X[:, 0] > 0, [True, False], ([0, 1], [1, 2]), (slice(None), [2, 0]), (np.array([[1], [0]]), 1)],
    *[(0, [1, 1]), (..., X[0] > 0), (None, [1, 0]), ([0, 1], slice(None, None, -1)), (X[:, 0] > 0, [1])],
]


@pytest.mark.parametrize("index", ARRAYS)
def test_arrays_can_be_in_an_index_as_in_numpy(index: Any):
    as_tensors = tuple(to_tensor(i) if isinstance(i, (np.ndarray, list)) else i for i in index)
    as_tensors = as_tensors if isinstance(index, tuple) else to_tensor(index)
    np.testing.assert_array_equal(to_tensor(X)[index].numpy(), X[index])
    np.testing.assert_array_equal(to_tensor(X)[as_tensors].numpy(), X[index])


@pytest.mark.parametrize("index", ARRAYS)
def test_gradients_reach_the_elements_that_an_index_named(index: Any):
    x, expected = to_tensor(X, stop_gradient=False), np.zeros_like(X)
    (x[index] * 2.0).sum().backward()
    np.add.at(expected, index, 2.0)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_a_slice_of_step_zero_is_refused():
    for value in (to_tensor(X), app.static.data("x", [4, 3]), app.static.data("y", [None, 3])):
        with pytest.raises(ShapeError, match="the step of a slice cannot be zero"):
            value[::0]


@pytest.mark.parametrize(
    "index", [0, (1, 2), slice(None), (..., slice(0, 2)), [1, 0], X > 2, ([0, 1], [1, 2]), np.int64(1)]
)
def test_a_part_can_be_replaced(index: Any):
    x, expected = to_tensor(X), X.copy()
    x[index] = -1
    expected[index] = -1
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_part_can_be_replaced_by_tensors_where_tensors_say():
    x = to_tensor(X)
    x[to_tensor([1])] = to_tensor([7.0, 8.0, 9.0])
    x[x < 2] = to_tensor(0.5)
    assert x.tolist() == [[0.5, 0.5, 2.0], [7.0, 8.0, 9.0]]


def test_a_change_is_seen_by_tensors_of_the_same_numbers():
    x = to_tensor(X)
    views = [x.detach(), x.reshape([6]), x[0], x.T]
    copies = [x.clone(), to_tensor(x), x + 0]
    x[:] = -1
    assert all((v.numpy() == -1).all() for v in views)
    x.set_value(X * 0)
    assert all((v.numpy() == 0).all() for v in views)
    assert all((c.numpy() == X).all() for c in copies)


def test_parts_of_a_leaf_are_not_replaced_while_gradients_are_recorded():
    x, y = to_tensor(X), to_tensor([1.0], stop_gradient=False)
    x[0, 0] = y[0] * 3
    x.sum().backward()
    assert y.grad.tolist() == [3.0]
    with pytest.raises(InPlaceError, match=r"do it inside app\.no_grad\(\)"):
        y[0] = 1.0
    with app.no_grad():
        y[0] = 5.0
    assert y.tolist() == [5.0]


# Changes in place


def test_set_value_keeps_the_type_and_refuses_another_shape():
    x = app.zeros([2])
    x.set_value([1, 2])
    assert (x.tolist(), x.dtype) == ([1.0, 2.0], "float32")
    x.set_value(to_tensor([3.5, 4.5], "float64"))
    assert (x.tolist(), x.dtype) == ([3.5, 4.5], "float32")
    with pytest.raises(ShapeError, match=r"of shape \[2\] got shape \[3\]"):
        x.set_value([1, 2, 3])


@pytest.mark.parametrize("operate", [operator.iadd, operator.isub, operator.imul, operator.itruediv])
def test_operators_in_place(operate: Any):
    x = to_tensor(A, dtype="float32")
    found = operate(x, B)
    assert found is x
    expected = operate(A.copy(), B)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
    assert x.dtype == "float32"


def test_a_change_in_place_keeps_the_shape():
    x = to_tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"of shape \[2\] cannot be changed in place to shape \[2, 2\]"):
        x += np.ones((2, 2))
    assert x.tolist() == [1.0, 2.0]


def test_whole_numbers_cannot_become_floats_in_place():
    n = to_tensor([1, 2])
    with pytest.raises(DtypeError, match="a Tensor of int64 cannot be changed in place to float32"):
        n += 0.5
    n += 1
    assert n.tolist() == [2, 3]


def test_a_parameter_is_trained_unless_it_is_said_otherwise():
    weight = app.tensor.Parameter(np.ones(2))
    assert (weight.trainable, weight.persistable, weight.stop_gradient) == (True, True, False)
    weight.trainable = False
    assert weight.stop_gradient
    assert (weight * 2).stop_gradient


def test_numpy_functions_are_operators_through_which_gradients_flow():
    x = app.to_tensor([1.0, 2.0], dtype="float64", stop_gradient=False)
    (x / (1 + np.exp(-x)) + np.maximum(x, 1.5)).sum().backward()
    s = 1 / (1 + np.exp(-np.array([1.0, 2.0])))
    np.testing.assert_allclose(x.grad.numpy(), s + np.array([1.0, 2.0]) * s * (1 - s) + [0, 1])


def test_numpy_functions_without_an_operator_need_a_value_that_wants_no_gradient():
    x = app.to_tensor([1.0, 2.0])
    np.testing.assert_allclose(np.hypot(x, 1.0), np.hypot([1.0, 2.0], 1.0), rtol=1e-6)
    x.stop_gradient = False
    with pytest.raises(app.errors.OperatorError, match=r"np\.hypot does not work on a Tensor"):
        np.hypot(x, 1.0)
