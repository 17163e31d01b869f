"""Readers: functions that give iterators, each asked anew for every pass over the examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.compat.paddle import _readers as readers
from app.errors import DataError


def count(n: int) -> readers.Reader:
    return lambda: iter(range(n))


@pytest.mark.parametrize(
    ("reader", "examples"),
    [
        (readers.batch(count(5), 2), [[0, 1], [2, 3], [4]]),
        (readers.batch(count(5), 2, drop_last=True), [[0, 1], [2, 3]]),
        (readers.firstn(count(9), 3), [0, 1, 2]),
    ],
)
def test_readers_are_made_of_readers_and_can_be_read_again(reader: readers.Reader, examples: list[Any]):
    assert list(reader()) == list(reader()) == examples


def test_wrong_arguments_are_errors():
    with pytest.raises(DataError, match="batch_size = 0"):
        readers.batch(count(5), 0)


def test_shuffling_keeps_the_examples_of_each_stretch():
    seen = list(readers.shuffle(count(100), 50)())
    assert seen != list(range(100))
    assert (sorted(seen[:50]), sorted(seen[50:])) == (list(range(50)), list(range(50, 100)))


def test_mnist_is_numbers_from_minus_one_to_one_with_labels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPSMITH_DATA", "sample")
    pixels, label = next(readers.mnist("train")())
    assert (pixels.shape, pixels.dtype, type(label)) == ((784,), np.dtype("float32"), int)
    assert (pixels.min(), pixels.max()) == (-1.0, 1.0)
    assert sum(1 for _ in readers.mnist("test")()) == 2000
