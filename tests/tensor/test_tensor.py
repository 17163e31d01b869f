"""What a Tensor does as a Python value: its numbers, its text, indexing, and arithmetic with what is no Tensor."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import vectorize
from scipy import special

import app
from app import Tensor, static, to_tensor
from app.errors import AppError, DtypeError, OperatorError, ShapeError

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
        ([to_tensor(np.ones(2)), [1.5, 2.0]], "float64"),
        (([to_tensor(2), 1.5], [3.5, 4]), "float32"),
    ],
)
def test_python_floats_get_the_default_type_and_arrays_keep_theirs(data: Any, dtype: str):
    tensor = to_tensor(data)
    assert (tensor.dtype, tensor.shape) == (dtype, list(np.shape(data)))
    assert tensor.tolist() == np.asarray(data).tolist()
    assert to_tensor(data, dtype="float16").dtype == "float16"


def test_a_tensor_has_numbers_of_its_own_and_is_a_leaf():
    array = np.zeros(2)
    tensor, again = to_tensor(array), to_tensor(to_tensor(array))
    array[:] = 1
    tensor.numpy()[:] = 5
    np.asarray(tensor)[:] = 5
    assert tensor.tolist() == again.tolist() == [0.0, 0.0]
    x = to_tensor([1.0], stop_gradient=False)
    y = to_tensor(x * 2, stop_gradient=False)
    y.backward()
    assert (x.grad, y.grad.tolist()) == (None, [1.0])


@pytest.mark.parametrize("data", ["text", None, [1j], np.array([1], "uint16")])
def test_data_that_is_no_number_is_an_error(data: Any):
    with pytest.raises(DtypeError, match="is not an element type; expected one of bool, uint8"):
        to_tensor(data)


def test_a_parameter_is_trained_unless_it_is_frozen():
    weight = app.tensor.Parameter(np.ones(2))
    assert (weight.trainable, weight.persistable, weight.stop_gradient) == (True, True, False)
    weight.trainable = False
    assert weight.stop_gradient
    assert (weight * 2).stop_gradient


# Attributes and text


def test_attributes_of_a_tensor():
    x = to_tensor(X, stop_gradient=False)
    assert (x.shape, x.ndim, x.dim(), x.size, x.numel(), x.dtype) == ([2, 3], 2, 2, 6, 6, "float64")
    assert (x.is_leaf, x.grad, x.persistable, x.place) == (True, None, False, "Place(cpu)")
    assert not (x * 2).is_leaf
    assert x.name == x.name != to_tensor(X).name
    x.name = "mine"
    assert x.name == "mine"


def test_repr_and_format():
    assert repr(to_tensor([[1.0, 2.5], [3.0, 4.0]], stop_gradient=False)) == (
        "Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False,\n"
        "       [[1. , 2.5],\n"
        "        [3. , 4. ]])"
    )
    assert repr(to_tensor(3)) == "Tensor(shape=[], dtype=int64, place=Place(cpu), stop_gradient=True,\n       3)"
    assert f"{to_tensor([2.5]):.2f}|{to_tensor(7):>3}" == "2.50|  7"
    assert f"{to_tensor([1, 2])}" == repr(to_tensor([1, 2]))
    assert f"{to_tensor([1, 2]):>150}" == repr(to_tensor([1, 2])).rjust(150)


# As a number, a truth value, a sequence, an array


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_tensor_with_one_element_is_a_number(shape: tuple[int, ...]):
    x = to_tensor(np.full(shape, 2.75))
    assert (x.item(), float(x), int(x), bool(x), bool(x * 0)) == (2.75, 2.75, 2, True, False)
    assert isinstance(x.item(), float)
    assert isinstance(to_tensor(np.full(shape, 3)).item(), int)


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
@pytest.mark.parametrize("use", [Tensor.item, float, int, bool, operator.index])
def test_a_tensor_without_exactly_one_element_is_not_a_number(shape: tuple[int, ...], use: Any):
    with pytest.raises(ShapeError, match=rf"shape {list(shape)}".replace("[", r"\[")):
        use(app.zeros(shape, "int64"))


def test_a_tensor_can_be_an_index_and_a_key():
    assert [10, 20, 30][to_tensor(1)] == 20
    assert list(range(to_tensor(2))) == [0, 1]
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        range(to_tensor(2.7))
    x, y = to_tensor(1.0), to_tensor(1.0)
    assert {x: "x", y: "y"}[x] == "x"
    assert len({x, y, x}) == 2


def test_len_and_iteration_go_over_the_first_axis():
    x = to_tensor(X, stop_gradient=False)
    assert len(x) == 2
    assert [row.tolist() for row in x] == X.tolist()
    assert 4.0 in x[1]
    assert 9.0 not in x[1]
    first, second = x
    (first * 2 + second).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3, [1.0] * 3]
    with pytest.raises(ShapeError, match="a scalar has no length"):
        len(to_tensor(1.0))


def test_numpy_functions_take_tensors():
    assert np.asarray(to_tensor(X), dtype="float32").dtype == "float32"
    assert np.array(to_tensor([1, 2]), copy=True).tolist() == [1, 2]
    x = to_tensor([1.0, 2.0], dtype="float64", stop_gradient=False)
    (x / (1 + np.exp(-x)) + np.maximum(x, 1.5)).sum().backward()
    s = 1 / (1 + np.exp(-np.array([1.0, 2.0])))
    np.testing.assert_allclose(x.grad.numpy(), s + np.array([1.0, 2.0]) * s * (1 - s) + [0, 1])
    np.testing.assert_allclose(np.hypot(to_tensor([1.0, 2.0]), 1.0), np.hypot([1.0, 2.0], 1.0), rtol=1e-6)
    with pytest.raises(OperatorError, match=r"np\.hypot does not work on a Tensor"):
        np.hypot(x, 1.0)


def test_a_users_function_with_the_name_of_an_operator_does_not_run_the_operator():
    @vectorize
    def relu(x):
        return x if x > 0 else -1.0

    x = to_tensor([-1.0, 3.0], dtype="float32")
    assert np.asarray(relu(x)).tolist() == [-1, 3]
    x.stop_gradient = False
    with pytest.raises(OperatorError, match=r"^relu does not work on a Tensor.*opsmith\.custom_op"):
        relu(x)
    with pytest.raises(AppError):
        relu(static.data("x", [2]))
    assert special.erf(x).detach().numpy() == pytest.approx(special.erf([-1.0, 3.0]), rel=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numpy_functions_run_the_operator_that_computes_the_same():
    functions = {f for f in vars(np).values() if isinstance(f, np.ufunc) and f.nout == 1}
    functions.remove(np.reciprocal)  # of integers it is an integer, and the operator's result a float
    run = 0
    for function in functions:
        arrays = [np.array([0.25, 0.5]), np.array([0.75, 0.25])][: function.nin]
        for inputs in (arrays, [array > 0.3 for array in arrays], [(array * 4).astype("int64") for array in arrays]):
            try:
                result = function(*[to_tensor(array, stop_gradient=False) for array in inputs])
                expected = function(*inputs)
            except (AppError, TypeError, ValueError):
                continue
            if isinstance(result, Tensor):
                run += 1
                np.testing.assert_allclose(result.numpy(), expected, rtol=1e-3, err_msg=str(function))
    assert run > 100


ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
A, B = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 0.5], [3.0, 1.0]])
OTHERS = [B, B.astype("float32"), B[0], np.float64(0.5), np.float32(2), 2, 2.0, True, [1, 2]]


@pytest.mark.parametrize("operate", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("other", OTHERS)
def test_arrays_and_python_values_on_either_side_give_a_tensor(operate: Any, other: Any):
    array = np.asarray(other, float)
    for result, expected in [
        (operate(to_tensor(A), other), operate(A, array)),
        (operate(other, to_tensor(A)), operate(array, A)),
    ]:
        assert isinstance(result, Tensor)
        np.testing.assert_allclose(result.numpy(), expected)


def test_products_and_gradients_with_an_array_on_the_left():
    x = to_tensor(A, stop_gradient=False)
    np.testing.assert_allclose((x @ B).numpy(), A @ B)
    y = B * x + np.float64(3) * x - B @ x
    np.testing.assert_allclose(y.numpy(), B * A + 3 * A - B @ A)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), B + 3 - B.T @ np.ones((2, 2)))


def test_operators_are_methods():
    x = to_tensor(X)
    assert ((-x).tolist(), abs(-x).tolist()) == ((-X).tolist(), X.tolist())
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


ARRAYS: list[Any] = [
    *[X > 2, X[:, 0] > 0, [True, False], ([0, 1], [1, 2]), (slice(None), [2, 0]), (np.array([[1], [0]]), 1)],
    *[(0, [1, 1]), (..., X[0] > 0), (None, [1, 0]), ([0, 1], slice(None, None, -1)), (X[:, 0] > 0, [1])],
    *[True, False],
    *[1, [1, 0, 1], np.array([[1], [0]]), np.int64(1), (np.int64(1), 2), (slice(np.int64(0), 1), np.int32(-1))],
]


@pytest.mark.parametrize("index", ARRAYS)
def test_arrays_in_an_index_mean_the_same_as_in_numpy_in_both_modes(index: Any):
    x, expected = to_tensor(X, stop_gradient=False), np.zeros_like(X)
    parts = [x[index]]
    if isinstance(index, (np.ndarray, list)):
        parts.append(x[to_tensor(index)])
    elif isinstance(index, tuple):
        parts.append(x[tuple(to_tensor(i) if isinstance(i, (np.ndarray, list)) else i for i in index)])
    np.add.at(expected, index, 2.0)
    for part in parts:
        np.testing.assert_array_equal(part.numpy(), X[index])
        np.testing.assert_array_equal(app.grad((part * 2.0).sum(), x)[0].numpy(), expected)
    variable = static.data("x", [2, 3], "float64")[index]
    (value,) = static.Executor().run(feed={"x": X}, fetch_list=[variable])
    np.testing.assert_array_equal(value, X[index])


def test_a_slice_of_step_zero_is_an_error():
    for value in (to_tensor(X), static.data("x", [4, 3]), static.data("y", [None, 3])):
        with pytest.raises(ShapeError, match="the step of a slice cannot be zero"):
            value[::0]
