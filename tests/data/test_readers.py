"""Readers: functions that give iterators, each asked anew for every pass over the examples."""

from __future__ import annotations

import numpy as np
import pytest

from app.data import readers
from app.errors import DataError


def count(n: int) -> readers.Reader:
    return lambda: iter(range(n))


@pytest.mark.parametrize(("drop_last", "expected"), [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])])
def test_batches_are_lists_and_can_be_had_again(drop_last: bool, expected: list):
    batches = readers.batch(count(5), 2, drop_last=drop_last)
    assert list(batches()) == list(batches()) == expected


def test_a_batch_holds_at_least_one_example():
    with pytest.raises(DataError, match="batch_size = 0"):
        readers.batch(count(5), 0)


def test_shuffling_keeps_the_examples_of_each_stretch():
    seen = list(readers.shuffle(count(100), 50)())
    assert seen != list(range(100))
    assert (sorted(seen[:50]), sorted(seen[50:])) == (list(range(50)), list(range(50, 100)))


def test_readers_are_made_of_readers():
    assert list(readers.firstn(count(9), 3)()) == [0, 1, 2]
    assert list(readers.chain(count(2), count(3))()) == [0, 1, 0, 1, 2]
    assert list(readers.map_readers(lambda a, b: a + 10 * b, count(3), count(3))()) == [0, 11, 22]
    assert list(readers.buffered(count(3), 10)()) == [0, 1, 2]


def test_composed_readers_have_the_same_number_of_examples():
    pairs = readers.map_readers(lambda x: (x, -x), count(2))
    assert list(readers.compose(count(2), pairs)()) == [(0, 0, 0), (1, 1, -1)]
    with pytest.raises(DataError, match="do not have the same number"):
        list(readers.compose(count(2), count(3))())
    assert list(readers.compose(count(2), count(3), check_alignment=False)()) == [(0, 0), (1, 1)]


def test_a_cache_asks_once():
    asked: list[int] = []

    def reader():
        asked.append(1)
        yield from range(3)

    kept = readers.cache(reader)
    assert list(kept()) == list(kept()) == [0, 1, 2]
    assert asked == [1]


def test_mnist_is_numbers_from_minus_one_to_one_with_labels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPSMITH_DATA", "sample")
    pixels, label = next(readers.mnist("train")())
    assert (pixels.shape, pixels.dtype, type(label)) == ((784,), np.dtype("float32"), int)
    assert (pixels.min(), pixels.max()) == (-1.0, 1.0)
    assert sum(1 for _ in readers.mnist("test")()) == 2000
