"""The error for rows of a wrong length: its text in both modes, and Numba itself unchanged."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import njit
from numba.np import arrayobj

import app
from app import static
from app.engine.compiled import shape_errors
from app.errors import OperatorError

pytestmark = pytest.mark.slow

TEXT = r"raised AssignedShapeError: cannot assign slice of shape \(4,\) from input of shape \(2,\)"


def test_the_error_names_both_shapes_in_both_modes():
    @app.custom_op(infer=lambda x: x)
    @njit
    def halves(x):
        y = np.empty_like(x)
        for i in range(x.shape[0]):
            y[i] = x[i, : 4 if x[0, 0] >= 0 else 2]
        return y

    whole = np.ones((2, 4), "float32")
    np.testing.assert_array_equal(halves(app.to_tensor(whole)).numpy(), whole)
    with pytest.raises(OperatorError, match=TEXT) as caught:
        halves(app.to_tensor(-whole))
    assert isinstance(caught.value, ValueError)
    y = halves(static.data("x", [None, 4]))
    with pytest.raises(OperatorError, match=TEXT):
        static.Executor(engine="compiled").run(feed={"x": -whole}, fetch_list=[y])


def test_it_is_kept_with_its_shapes_and_numba_is_left_as_it_was():
    error = pickle.loads(pickle.dumps(shape_errors.AssignedShapeError((4,), (2,))))
    assert str(error) == "cannot assign slice of shape (4,) from input of shape (2,)"
    before = arrayobj.raise_with_shape_context
    with shape_errors.compiled_quickly(), shape_errors.compiled_quickly():
        assert arrayobj.raise_with_shape_context is not before
    assert arrayobj.raise_with_shape_context is before
