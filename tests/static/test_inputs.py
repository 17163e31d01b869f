"""What a Program is fed: `DataFeeder` makes rows of examples into arrays of the shapes and types declared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app import static
from app.errors import DtypeError, ProgramError


def test_rows_become_a_column_for_each_variable_in_its_shape_and_type():
    image, label = static.data("image", [None, 2, 2]), static.data("label", [None, 1], "int64")
    static.data("open", [None, None])
    feeder = static.DataFeeder([image, label, "open"], place=None)
    fed = feeder.feed(iter([(np.arange(4.0), 3, [1, 2, 3]), ([4, 5, 6, 7], np.array([1]), [4, 5, 6])]))
    assert {name: (array.shape, array.dtype.name) for name, array in fed.items()} == {
        "image": ((2, 2, 2), "float32"),
        "label": ((2, 1), "int64"),
        "open": ((2, 3), "float32"),
    }
    found = static.Executor().run(feed=fed, fetch_list=[image * 2.0, label, "open"])
    expected = [np.arange(0, 16, 2).reshape(2, 2, 2), [[3], [1]], [[1, 2, 3], [4, 5, 6]]]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)
    with static.program_guard(static.Program()):
        assert static.DataFeeder(["open"], program=image.program).feed([([1, 2, 3],)])["open"].shape == (1, 3)


@pytest.mark.parametrize(("item", "found"), [(1.5, "float64"), (np.array([300]), "int64, with numbers that uint8")])
def test_an_item_that_its_variable_cannot_hold_is_an_error(item: Any, found: str):
    feeder = static.DataFeeder([static.data("y", [None, 1], "uint8")])
    with pytest.raises(DtypeError, match=f"y is uint8, and was given {found}"):
        feeder.feed([(3,), (item,)])


def test_an_example_of_another_width_is_an_error():
    feeder = static.DataFeeder([static.data("x", [None, 1]), static.data("y", [None, 1])])
    with pytest.raises(ProgramError, match="example 1 has 1 items, but 2 are fed: x, y"):
        feeder.feed([(1, 2), (3,)])
