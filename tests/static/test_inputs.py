"""What a Program is fed: `DataFeeder` makes rows of examples into arrays of the shapes and types declared."""

from __future__ import annotations

import numpy as np
import pytest

from app import static
from app.errors import ProgramError


def test_rows_become_a_column_for_each_variable_in_its_shape_and_type():
    image, label = static.data("image", [None, 2, 2]), static.data("label", [None, 1], "int64")
    fed = static.DataFeeder([image, label]).feed([(np.arange(4.0), 3), ([4, 5, 6, 7], np.array([1]))])
    assert (fed["image"].shape, fed["image"].dtype) == ((2, 2, 2), "float32")
    assert (fed["label"].tolist(), fed["label"].dtype) == ([[3], [1]], "int64")
    assert fed["image"][1].tolist() == [[4, 5], [6, 7]]


def test_variables_can_be_named_and_sizes_unknown():
    static.data("x", [None, None])
    program = static.default_main_program()
    with static.program_guard(static.Program()):
        assert static.DataFeeder(["x"], program=program).feed([([1, 2, 3],)])["x"].shape == (1, 3)


def test_what_was_made_can_be_fed():
    x = static.data("x", [None, 2])
    feeder = static.DataFeeder([x], place=None)
    (out,) = static.Executor().run(feed=feeder.feed(iter([([1, 2],), ([3, 4],)])), fetch_list=[x * 2.0])
    assert out.tolist() == [[2, 4], [6, 8]]


def test_an_example_of_another_width_is_refused():
    feeder = static.DataFeeder([static.data("x", [None, 1]), static.data("y", [None, 1])])
    with pytest.raises(ProgramError, match="example 1 has 1 items, but 2 are fed: x, y"):
        feeder.feed([(1, 2), (3,)])
