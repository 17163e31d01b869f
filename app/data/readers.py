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


def chain(*readers: Reader) -> Reader:
    """The examples of one reader after those of another."""
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """Combine one example of each reader into one."""

    def composed() -> Iterator[Any]:
        absent = object()
        rows = itertools.zip_longest(*(reader() for reader in readers), fillvalue=absent)
        for row in rows:
            if any(part is absent for part in row):
                if check_alignment:
                    raise DataError("the readers that were composed do not have the same number of examples")
                return
            yield tuple(item for part in row for item in (part if isinstance(part, tuple) else (part,)))

    return composed


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """Apply a function to one example of each reader."""
    return lambda: map(func, *(reader() for reader in readers))


def cache(reader: Reader) -> Reader:
    """Read the examples once and keep them in memory."""
    kept = list(reader())
    return lambda: iter(kept)


def buffered(reader: Reader, size: int) -> Reader:
    """The reader itself: its examples are in memory, so there is nothing to read ahead."""
    return reader


def mnist(part: str) -> Reader:
    """MNIST's images as 784 numbers from -1 to 1, with labels. `part` is "train" or "test"."""

    data = load()
    images, labels = getattr(data, f"{part}_images"), getattr(data, f"{part}_labels")

    def examples() -> Iterator[tuple[np.ndarray, int]]:
        for pixels, label in zip(images, labels, strict=True):
            yield pixels.astype(np.float32) / 127.5 - 1.0, int(label)

    return examples
