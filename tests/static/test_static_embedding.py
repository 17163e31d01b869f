"""Rows of a table of parameters, in a Program."""

from __future__ import annotations

import numpy as np
import pytest

from app import optimizer, static
from app.nn import ParamAttr
from app.nn.initializer import Assign

TABLE = np.arange(12.0).reshape(6, 2).astype("float32")


@pytest.mark.parametrize(("padding", "padded"), [(None, []), (0, [0]), (-1, [5])])
def test_an_embedding_gives_the_row_of_each_number(padding: int | None, padded: list[int]):
    ids = static.data("ids", [-1, 2], "int64")
    attr = ParamAttr("table", initializer=Assign(TABLE))
    rows = static.nn.embedding(ids, (6, 2), padding_idx=padding, param_attr=attr)
    assert tuple(rows.shape) == (-1, 2, 2)
    optimizer.SGD(1.0).minimize(rows.sum())
    executor = static.Executor()
    executor.run(static.default_startup_program())
    (found,) = executor.run(feed={"ids": np.array([[0, 5], [0, 2]])}, fetch_list=[rows])
    expected, counted = TABLE.copy(), np.array([2.0, 0, 1, 0, 0, 1])
    expected[padded], counted[padded] = 0, 0
    np.testing.assert_array_equal(found, expected[[[0, 5], [0, 2]]])
    np.testing.assert_array_equal(static.global_scope().values["table"], TABLE - counted[:, None])
