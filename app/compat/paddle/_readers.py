"""Readers as in Paddle 1: functions without parameters that return an iterator over examples."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from app.data.mnist import load
from app.errors import DataError

Reader = Callable[[], Iterator[Any]]


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """Lists of `batch_size` examples; the last is shorter, or left out."""
    if int(batch_size) < 1:
        raise DataError(f"a batch must hold at least 1 example, found batch_size = {batch_size}")

    def batches() -> Iterator[Any]:
        examples = iter(reader())
        while chosen := list(itertools.islice(examples, int(batch_size))):
            if len(chosen) == batch_size or not drop_last:
                yield chosen

    return batches


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """Shuffle within consecutive groups of `buf_size` examples."""

    def shuffled() -> Iterator[Any]:
        examples = iter(reader())
        while stretch := list(itertools.islice(examples, int(buf_size))):
            random.shuffle(stretch)
            yield from stretch

    return shuffled


def firstn(reader: Reader, n: int) -> Reader:
    """The first n examples."""
    return lambda: itertools.islice(reader(), n)


def mnist(part: str) -> Reader:
    """MNIST's images as 784 numbers from -1 to 1, with labels. `part` is "train" or "test"."""

    data = load()
    images, labels = getattr(data, f"{part}_images"), getattr(data, f"{part}_labels")

    def examples() -> Iterator[tuple[np.ndarray, int]]:
        for pixels, label in zip(images, labels, strict=True):
            yield pixels.astype(np.float32) / 127.5 - 1.0, int(label)

    return examples
