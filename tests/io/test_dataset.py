"""Data sets made of others: which example is where."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import app
from app import io, to_tensor
from app.errors import DataError


class Numbers(io.Dataset):
    """The numbers from `start` on."""

    def __init__(self, count: int, start: int = 0):
        self.count, self.start = count, start

    def __getitem__(self, index: int) -> int:
        return range(self.start, self.start + self.count)[index]

    def __len__(self) -> int:
        return self.count


class Stream(io.IterableDataset):
    def __init__(self, *numbers: int):
        self.numbers = numbers

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)


def test_rows_of_tensors():
    data = io.TensorDataset([to_tensor([[1, 2], [3, 4]]), np.array([5, 6])])
    x, y = data[1]
    assert (x.tolist(), int(y), len(data)) == ([3, 4], 6, 2)
    with pytest.raises(DataError, match=r"equally many rows, found \[2, 3\]"):
        io.TensorDataset([np.zeros(2), np.zeros(3)])


def test_data_sets_one_after_the_other():
    joined = io.ConcatDataset([Numbers(2), Numbers(0), Numbers(3, 10)])
    assert (list(joined), len(joined), joined[-1], joined[1]) == ([0, 1, 10, 11, 12], 5, 12, 1)
    with pytest.raises(IndexError):
        joined[5]


def test_data_sets_are_added():
    assert list(Numbers(2) + Numbers(1, 7)) == [0, 1, 7]


def test_examples_can_be_chosen():
    assert list(io.Subset(Numbers(10), [7, 2])) == [7, 2]


@pytest.mark.parametrize(("lengths", "counts"), [([2, 8], [2, 8]), ([0.25, 0.75], [3, 7]), ([1.0], [10])])
def test_examples_are_dealt_out_at_random_each_once(lengths: list[float], counts: list[int]):
    app.seed(0)
    parts = io.random_split(Numbers(10), lengths)
    assert [len(part) for part in parts] == counts
    assert sorted(n for part in parts for n in part) == list(range(10))
    app.seed(0)
    assert [list(part) for part in io.random_split(Numbers(10), lengths)] == [list(part) for part in parts]


def test_what_a_data_set_lacks_is_told():
    with pytest.raises(DataError, match=r"parts of \[3\] are 3 examples, the data set has 10"):
        io.random_split(Numbers(10), [3])
    for negative in ([-2, 12], [-0.5, 1.5]):
        with pytest.raises(DataError, match="a part cannot be negative"):
            io.random_split(Numbers(10), negative)
    with pytest.raises(DataError, match=r"add up to 10, or fractions that add up to 1; found \[3\.7, 7\.3\]"):
        io.random_split(Numbers(10), [3.7, 7.3])
    with pytest.raises(DataError, match="takes at least one data set"):
        io.ConcatDataset([])
    with pytest.raises(NotImplementedError, match="Dataset needs a method __getitem__"):
        io.Dataset()[0]
    with pytest.raises(NotImplementedError, match="Dataset needs a method __len__"):
        len(io.Dataset())
    with pytest.raises(NotImplementedError, match="IterableDataset needs a method __iter__"):
        iter(io.IterableDataset())
    with pytest.raises(DataError, match="Stream cannot be indexed; iterate over it"):
        Stream(1)[0]
    with pytest.raises(TypeError, match="Stream has no length"):
        len(Stream(1))
