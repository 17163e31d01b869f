"""In which order the examples of a data set are seen, and which make a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from app.errors import DataError
from app.ops.random import generator as random_generator
from app.ranks.current import place


class Sampler:
    """The base: subclasses give the numbers of examples in some order."""

    def __init__(self, data_source: Sized | None = None):
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} needs a method __iter__() that gives numbers of examples")


class SequenceSampler(Sampler):
    """One after the other."""

    def __init__(self, data_source: Sized):
        super().__init__(data_source)
        self._count = len(data_source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._count))

    def __len__(self) -> int:
        return self._count


class RandomSampler(Sampler):
    """In random order, anew each time; with `replacement`, each as likely at every draw."""

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ):
        super().__init__(data_source)
        if num_samples is not None and num_samples < 1:
            raise DataError(f"RandomSampler: num_samples must be at least 1, found {num_samples}")
        self.replacement, self.generator = replacement, generator
        self._count = len(data_source)
        self.num_samples = self._count if num_samples is None else num_samples
        if not replacement and self.num_samples > self._count:
            raise DataError(f"RandomSampler: {self.num_samples} of {self._count} examples need replacement=True")

    def __iter__(self) -> Iterator[int]:
        draw = random_generator() if self.generator is None else self.generator
        if not isinstance(draw, np.random.Generator):
            return iter([int(next(draw)) for _ in range(self.num_samples)])
        if self.replacement:
            return iter(draw.integers(0, self._count, self.num_samples).tolist())
        return iter(draw.permutation(self._count)[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The numbers that are listed, in random order."""

    def __init__(self, indices: Sequence[int]):
        super().__init__(indices)
        if not len(indices):
            raise DataError("SubsetRandomSampler takes at least one number")
        self.indices = list(indices)

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in random_generator().permutation(len(self.indices))])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Numbers drawn at random, each as likely as its weight says."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True):
        super().__init__()
        self.weights = np.asarray(weights, np.float64)
        if self.weights.ndim != 1 or np.any(self.weights < 0) or self.weights.sum() <= 0:
            raise DataError("WeightedRandomSampler takes one weight for each example, none negative and not all zero")
        self.num_samples, self.replacement = int(num_samples), replacement
        if not replacement and np.count_nonzero(self.weights) < self.num_samples:
            raise DataError(
                f"WeightedRandomSampler: {self.num_samples} draws without replacement of "
                f"{np.count_nonzero(self.weights)} examples that have a weight"
            )

    def __iter__(self) -> Iterator[int]:
        shares = self.weights / self.weights.sum()
        drawn = random_generator().choice(len(shares), self.num_samples, self.replacement, shares)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` numbers, from a data set or from another sampler; the last is shorter, or left out."""

    def __init__(
        self,
        dataset: Sized | None = None,
        sampler: Iterable[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ):
        super().__init__(dataset)
        if (dataset is None) == (sampler is None):
            raise DataError("BatchSampler takes a data set, or a sampler: one of the two")
        if not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise DataError(f"a batch must hold at least 1 example, found batch_size = {batch_size!r}")
        self.batch_size, self.drop_last, self.shuffle = int(batch_size), drop_last, shuffle
        if sampler is not None:
            self.sampler: Any = sampler
        else:
            assert dataset is not None
            self.sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + bool(rest and not self.drop_last)


class DistributedBatchSampler(BatchSampler):
    """The batches of one of several processes, which share an order that `set_epoch` chooses."""

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ):
        super().__init__(dataset, None, shuffle, batch_size, drop_last)
        here, ranks = place()
        self.nranks = num_replicas or ranks
        self.local_rank, self.epoch = here if rank is None else rank, 0
        if not 0 <= self.local_rank < self.nranks:
            raise DataError(f"DistributedBatchSampler: there is no rank {self.local_rank} among {self.nranks}")
        self._count = len(dataset)
        self.num_samples = -(-self._count // self.nranks)

    def __iter__(self) -> Iterator[list[int]]:
        order = np.random.default_rng(self.epoch).permutation(self._count) if self.shuffle else np.arange(self._count)
        self.epoch += self.shuffle
        filled = np.resize(order, self.num_samples * self.nranks)
        self.sampler = filled[self.local_rank :: self.nranks].tolist()
        return super().__iter__()

    def __len__(self) -> int:
        whole, rest = divmod(self.num_samples, self.batch_size)
        return whole + bool(rest and not self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass."""
        self.epoch = epoch
