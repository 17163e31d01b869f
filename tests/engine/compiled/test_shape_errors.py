"""The errors for rows of a wrong length and axes out of bounds: their text in both modes, and Numba unchanged."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import njit, types
from numba.np import arraymath, arrayobj
from numpy.exceptions import AxisError

import app
from app import static
from app.engine.compiled import shape_errors
from app.errors import OperatorError

pytestmark = pytest.mark.slow


@app.custom_op(infer=lambda x: static.InputSpec([None]))
@njit
def sums(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i, : 4 if x[0, 0] >= 0 else 2]
    return y.sum(axis=-1 if x[0, 1] >= 0 else 5)


def test_the_error_names_shapes_and_axes_in_both_modes():
    ones = np.ones((2, 4), "float32")
    np.testing.assert_array_equal(sums(app.to_tensor(ones)).numpy(), [4, 4])
    y = sums(static.data("x", [None, 4]))
    for place, message in (
        (0, r"AssignedShapeError: cannot assign slice of shape \(4,\) from input of shape \(2,\)"),
        (1, "AxisError: axis 5 is out of bounds for array of dimension 2"),
    ):
        x = ones.copy()
        x[0, place] = -1
        with pytest.raises(OperatorError, match=f"raised {message}") as caught:
            sums(app.to_tensor(x))
        assert isinstance(caught.value.__cause__, ValueError)
        with pytest.raises(OperatorError, match=f"raised {message}"):
            static.Executor(engine="compiled").run(feed={"x": x}, fetch_list=[y])


def test_sums_without_an_axis_are_compiled_and_each_of_several_axes_is_checked():
    @njit
    def sums(x):
        return np.sum(x, None), np.sum(x, 0)

    x = np.arange(6.0).reshape(2, 3)
    with shape_errors.compiled_quickly():
        total, columns = sums(x)
    assert (total, columns.tolist()) == (15, [3, 5, 7])
    check = shape_errors._check_axis_compiled(types.Array(types.float64, 2, "C"), types.UniTuple(types.int64, 2))
    check(x, (0, -2))
    with pytest.raises(AxisError, match="axis -3 is out of bounds for array of dimension 2"):
        check(x, (0, -3))


def test_the_error_is_pickled_with_its_shapes_and_numba_is_unchanged():
    error = pickle.loads(pickle.dumps(shape_errors.AssignedShapeError((4,), (2,))))
    assert str(error) == "cannot assign slice of shape (4,) from input of shape (2,)"
    before = arrayobj.raise_with_shape_context, arraymath.check_axis_bounds
    with shape_errors.compiled_quickly(), shape_errors.compiled_quickly():
        assert arrayobj.raise_with_shape_context is not before[0]
        assert arraymath.check_axis_bounds is not before[1]
    assert (arrayobj.raise_with_shape_context, arraymath.check_axis_bounds) == before
