"""The limits of element types."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.errors import AppError


def test_limits_of_integers_and_floats():
    whole, fine = app.iinfo("int8"), app.finfo(app.float32)
    assert (whole.min, whole.max, whole.bits, whole.dtype) == (-128, 127, 8, "int8")
    assert repr(whole) == "paddle.iinfo(min=-128, max=127, bits=8, dtype=int8)"
    assert (fine.eps, fine.bits) == (float(np.finfo("float32").eps), 32)
    assert repr(fine).startswith("paddle.finfo(min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, resolution=1e-06")


def test_the_wrong_kind_of_type_is_an_error():
    with pytest.raises(AppError, match="iinfo expects an integer type, found float32; use finfo"):
        app.iinfo("float32")
    with pytest.raises(AppError, match="finfo expects a floating type, found int64; use iinfo"):
        app.finfo("int64")
