"""Attributes go through JSON and come back exactly as they were."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import ProgramError
from app.graph.serialise import value_from_data, value_to_data
from app.ops.dtype import NAMES
from app.ops.spec import Spec

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner).map(tuple) | st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


def through_json(value: Any) -> Any:
    return value_from_data(json.loads(json.dumps(value_to_data(value), allow_nan=False)))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float):
        return (type(b) is float and (math.copysign(1, a), repr(a)) == (math.copysign(1, b), repr(b))) or a != a != b
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(b) is dict and same(list(a.items()), list(b.items()))
    return type(a) is type(b) and a == b


@settings(max_examples=30, deadline=None)
@given(values)
def test_a_value_comes_back(value: Any):
    assert same(through_json(value), value)


@pytest.mark.parametrize("value", [slice(1, None, -2), Spec((-1, 3), "float32"), -0.0, 1e-320, 10**40])
def test_so_does_a_rarer_one(value: Any):
    assert repr(through_json(value)) == repr(value)


@pytest.mark.parametrize("name", NAMES)
def test_so_does_an_array_of_any_type(name: str):
    array = np.arange(6).reshape(2, 3).astype(name)
    if name.startswith("float"):
        array.flat[:4] = [np.inf, -np.inf, np.nan, np.finfo(name).tiny]
    back = through_json(array)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("value", [object(), np.array(["a"]), {1, 2}, (1, len)])
def test_what_cannot_be_written_is_told(value: Any):
    with pytest.raises(ProgramError, match=r"object|array|set|function"):
        value_to_data(value)
