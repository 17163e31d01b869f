"""Samplers: the order in which the examples of a data set are used, and which of them form a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

import numpy as np

from app.errors import DataError
from app.io.generator import generator_of
from app.ranks.current import place


class Sampler:
    """The base class. Subclasses define `__iter__`, which yields indices of examples."""

    def __init__(self, data_source: Sized | None = None):
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} needs a method __iter__() that gives indices of examples")


class SequenceSampler(Sampler):
    """All examples in order."""

    data_source: Sized

    def __init__(self, data_source: Sized):
        super().__init__(data_source)
        len(data_source)  # raises an error if it has no length

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Random order, a new one each time; with `replacement`, independent draws."""

    data_source: Sized

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ):
        super().__init__(data_source)
        if num_samples is not None and num_samples < 1:
            raise DataError(f"RandomSampler: num_samples must be at least 1, found {num_samples}")
        self.replacement, self.generator, self._chosen = replacement, generator, num_samples
        if not replacement and self.num_samples > len(data_source):
            raise DataError(f"RandomSampler: {num_samples} of {len(data_source)} examples need replacement=True")

    @property
    def num_samples(self) -> int:
        """The number of indices; by default that of the examples that there are now."""
        return len(self.data_source) if self._chosen is None else self._chosen

    def __iter__(self) -> Iterator[int]:
        if hasattr(self.generator, "__next__"):
            return iter([int(next(self.generator)) for _ in range(self.num_samples)])
        draw = generator_of(self.generator)
        count = len(self.data_source)
        if self.replacement:
            return iter(draw.integers(0, count, self.num_samples).tolist())
        return iter(draw.permutation(count)[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` indices, of a data set or from another sampler; a shorter last one can be dropped."""

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
            raise DataError("BatchSampler takes either a data set or a sampler")
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


class DistributedSampler(Sampler):
    """The examples of one of several processes. Each gets the same number; `seed` and the epoch choose the order."""

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        super().__init__(dataset)
        here, ranks = place()
        self.num_replicas, self.rank = num_replicas or ranks, here if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise DataError(f"{type(self).__name__}: there is no rank {self.rank} among {self.num_replicas}")
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self._count = len(dataset)
        self.num_samples = (self._count if drop_last else self._count + self.num_replicas - 1) // self.num_replicas
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = np.arange(self._count)
        if self.shuffle:
            order = np.random.default_rng(self.seed + self.epoch).permutation(self._count)
        return iter(np.resize(order, self.total_size)[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass."""
        self.epoch = epoch


class DistributedBatchSampler(BatchSampler):
    """The batches of one of several processes. The epoch, which goes up with each pass, chooses the order."""

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ):
        super().__init__(None, DistributedSampler(dataset, num_replicas, rank, shuffle), False, batch_size, drop_last)
        self.shuffle = shuffle

    def __iter__(self) -> Iterator[list[int]]:
        batches = list(super().__iter__())
        self.sampler.epoch += self.shuffle
        return iter(batches)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass."""
        self.sampler.set_epoch(epoch)
