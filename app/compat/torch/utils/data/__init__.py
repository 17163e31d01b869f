"""torch.utils.data"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app import io
from app.compat.missing import missing
from app.compat.torch._creation import CREATORS
from app.compat.torch._random import default_generator
from app.compat.torch.utils.data import distributed
from app.compat.torch.utils.data.distributed import DistributedSampler
from app.io import (
    ChainDataset,
    ConcatDataset,
    IterableDataset,
    Sampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    get_worker_info,
)
from app.io import SequenceSampler as SequentialSampler


class Dataset(io.Dataset):
    """Examples by number: subclasses say what `dataset[i]` is, and how many there are."""

    def __class_getitem__(cls, kind: Any) -> type:
        return cls  # Dataset[int] says what the examples are, to the reader

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class TensorDataset(Dataset, io.TensorDataset):
    """Example i is row i of each of several Tensors."""

    def __init__(self, *tensors: Any):
        io.TensorDataset.__init__(self, tensors)


class RandomSampler(io.RandomSampler):
    """In random order, anew each time; with `replacement`, each as likely at every draw."""

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: Any = None, generator: Any = None):
        super().__init__(data_source, replacement, num_samples)
        self._source = generator or default_generator

    def __iter__(self) -> Iterator[int]:
        with self._source.drawing():
            return super().__iter__()


class BatchSampler(io.BatchSampler):
    """Lists of `batch_size` numbers from another sampler; the last is shorter, or left out."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        super().__init__(None, sampler, False, batch_size, drop_last)


class DataLoader(io.DataLoader):
    """Iterating over it gives batches: fields of examples stacked, as Tensors."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
    ):
        settings = {
            "collate_fn": collate_fn or (default_convert if batch_size is None else default_collate),
            "num_workers": num_workers,
            "timeout": timeout,
            "worker_init_fn": worker_init_fn,
            "prefetch_factor": prefetch_factor or 2,
        }
        self.sampler = sampler
        if isinstance(dataset, io.IterableDataset):
            super().__init__(dataset, batch_size=batch_size, drop_last=drop_last, **settings)
            return
        if batch_sampler is None and batch_size is not None:
            if sampler is None:
                self.sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        if batch_sampler is None:
            super().__init__(dataset, batch_size=None, **settings)
        else:
            super().__init__(dataset, batch_sampler=batch_sampler, **settings)
        self.batch_size, self.drop_last = batch_size, drop_last


def default_collate(batch: Sequence[Any]) -> Any:
    """Numbers, arrays and Tensors as a Tensor, with an axis for the batch in front; text as a list."""
    return default_convert(io.default_collate_fn(batch))


def default_convert(data: Any) -> Any:
    """Arrays as Tensors, in whatever lists and dictionaries they are."""
    if isinstance(data, (np.ndarray, np.generic)):
        return CREATORS["as_tensor"](data) if data.dtype.kind in "biuf" else data
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, (tuple, list)):
        return type(data)(default_convert(value) for value in data)
    return data


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """The examples dealt out at random: so many to each part, or such shares of all."""
    with (generator or default_generator).drawing():
        return io.random_split(dataset, lengths)


__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "distributed",
    "get_worker_info",
    "random_split",
]

__getattr__ = missing(__name__)
