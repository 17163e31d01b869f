"""Data sets: examples by index or as a stream, and data sets composed of others."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from app.errors import DataError
from app.io.generator import generator_of


class Dataset:
    """A data set of examples by index. Subclasses define `__getitem__` and `__len__`."""

    def __class_getitem__(cls, kind: Any) -> type:
        """Allow `Dataset[int]` in annotations."""
        return cls

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method __getitem__(index) that gives an example")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} needs a method __len__() that says how many examples it has")


class IterableDataset(Dataset):
    """A data set that is a stream of examples. Subclasses define `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} needs a method __iter__() that gives the examples")

    def __getitem__(self, index: int) -> Any:
        raise DataError(f"{type(self).__name__} cannot be indexed; iterate over it")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} has no length")


class TensorDataset(Dataset):
    """Example i is row i of each of several values, which have the same number of rows."""

    def __init__(self, tensors: Sequence[Any]):
        self.tensors = list(tensors)
        counts = [len(tensor) for tensor in self.tensors]
        if len(set(counts)) != 1:
            raise DataError(f"TensorDataset takes values with equally many rows, found {counts}")

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class ConcatDataset(Dataset):
    """The examples of several data sets, one data set after another."""

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise DataError("ConcatDataset takes at least one data set")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __getitem__(self, index: int) -> Any:
        place = range(len(self))[index]
        which = bisect.bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class Subset(Dataset):
    """The examples of a data set at the given indices."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Split a data set at random into parts with the given numbers, or fractions, of examples."""
    counts = _counts(len(dataset), lengths)
    order = generator_of(generator).permutation(len(dataset)).tolist()
    ends = list(itertools.accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for count, end in zip(counts, ends, strict=True)]


def _counts(total: int, lengths: Sequence[float]) -> list[int]:
    if any(length < 0 for length in lengths):
        raise DataError(f"random_split: a part cannot be negative, found {list(lengths)}")
    if any(isinstance(length, float) for length in lengths) and math.isclose(sum(lengths), 1.0):
        counts = [int(total * share) for share in lengths]
        for rest in range(total - sum(counts)):
            counts[rest % len(counts)] += 1
        return counts
    counts = [int(length) for length in lengths]
    if counts != list(lengths):
        raise DataError(
            f"random_split: parts are whole numbers that add up to {total}, or fractions that add up to 1; found "
            f"{list(lengths)}"
        )
    if sum(counts) != total:
        raise DataError(f"random_split: parts of {counts} are {sum(counts)} examples, the data set has {total}")
    return counts
