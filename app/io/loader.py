"""`DataLoader`: the batches of a data set."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from app.errors import DataError
from app.io.collate import as_tensors, default_collate_fn
from app.io.dataset import Dataset, IterableDataset
from app.io.sampler import BatchSampler


class DataLoader:
    """Iterate over a data set in batches: the fields of examples, stacked, as Tensors.

    For a Program, `feed_list` and `return_list=False` yield dictionaries to feed. `batch_size=None` yields single
    examples. The calling thread prepares the batches: `num_workers` and the other settings of workers have no effect.
    """

    def __init__(
        self,
        dataset: Dataset,
        feed_list: Sequence[Any] | None = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[Any], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        persistent_workers: bool = False,
    ):
        if feed_list is None and not return_list:
            raise DataError("DataLoader: return_list=False needs a feed_list, which names the variables to feed")
        self.dataset, self.feed_list, self.return_list = dataset, feed_list, return_list
        self.num_workers = num_workers
        self.drop_last = drop_last
        self.batch_sampler: Any = batch_sampler
        streams = isinstance(dataset, IterableDataset)
        if batch_sampler is not None:
            if streams or shuffle or drop_last or batch_size not in (None, 1):
                raise DataError("DataLoader: batch_size, shuffle and drop_last cannot be given with a batch_sampler")
            batch_size = getattr(batch_sampler, "batch_size", 0)
        elif streams and shuffle:
            raise DataError("DataLoader: an IterableDataset cannot be shuffled")
        elif batch_size is not None and not streams:
            self.batch_sampler = BatchSampler(dataset, None, shuffle, batch_size, drop_last)
        self.batch_size = batch_size
        if batch_size is not None and batch_sampler is None and batch_size < 1:
            raise DataError(f"a batch must hold at least 1 example, found batch_size = {batch_size}")
        batched = batch_size is not None
        self.collate_fn = collate_fn or (default_collate_fn if batched else lambda example: example)

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __call__(self) -> Iterator[Any]:
        return iter(self)

    def __iter__(self) -> Iterator[Any]:
        make, items = self._batches()

        def batch(item: Any) -> Any:
            try:
                return self._finished(make(item))
            except StopIteration as error:
                raise DataError(
                    "DataLoader: the data set or collate_fn raised StopIteration, as next(...) does at the end of an "
                    "iterator, for a batch that should be there; give next a default, or use an IterableDataset"
                ) from error

        return map(batch, items)  # a generator would end after an error in a batch, as if the data set were over

    def _finished(self, batch: Any) -> Any:
        if self.return_list:
            return as_tensors(batch)
        fields = batch if isinstance(batch, (list, tuple)) else [batch]
        names = [getattr(variable, "name", variable) for variable in self.feed_list or ()]
        if len(fields) != len(names):
            raise DataError(f"DataLoader: {len(fields)} fields, but {len(names)} variables to feed: {', '.join(names)}")
        return dict(zip(names, fields, strict=True))

    def _batches(self) -> tuple[Callable[[Any], Any], Iterable[Any]]:
        """A function that makes a batch, and what it makes one of each."""
        if isinstance(self.dataset, IterableDataset):
            return self.collate_fn, iter(self.dataset) if self.batch_size is None else self._of_stream()
        if self.batch_sampler is None:
            return self._single, range(len(self.dataset))
        return self._batch, self.batch_sampler

    def _single(self, number: int) -> Any:
        return self.collate_fn(self.dataset[number])

    def _batch(self, numbers: Iterable[int]) -> Any:
        return self.collate_fn([self.dataset[number] for number in numbers])

    def _of_stream(self) -> Iterator[Any]:
        examples = iter(self.dataset)
        while batch := list(itertools.islice(examples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch


def get_worker_info() -> None:
    """None, as outside of workers: the calling thread prepares all batches."""
