"""The limits of element types."""

from __future__ import annotations

import numpy as np
import pytest

import app
from app.errors import AppError


def test_whole_numbers_have_a_smallest_and_a_largest():
    limits = app.iinfo("int8")
    assert (limits.min, limits.max, limits.bits, limits.dtype) == (-128, 127, 8, "int8")
    assert repr(limits) == "paddle.iinfo(min=-128, max=127, bits=8, dtype=int8)"


def test_floats_have_a_fineness_too():
    limits = app.finfo(app.float32)
    assert (limits.eps, limits.bits) == (float(np.finfo("float32").eps), 32)
    assert repr(limits).startswith("paddle.finfo(min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, resolution=1e-06")


def test_each_tells_of_its_own_kind():
    with pytest.raises(AppError, match="iinfo expects an integer type, found float32; use finfo"):
        app.iinfo("float32")
    with pytest.raises(AppError, match="finfo expects a floating type, found int64; use iinfo"):
        app.finfo("int64")
