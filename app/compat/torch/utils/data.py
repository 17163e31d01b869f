"""torch.utils.data: the framework's data sets, samplers and loader with PyTorch's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from app import io
from app.compat.torch._creation import CREATORS
from app.errors import DataError
from app.io import RandomSampler
from app.io import SequenceSampler as SequentialSampler
from app.io.collate import as_tensors


class _LoaderError(DataError, ValueError):
    """Arguments of a DataLoader that exclude each other."""


class TensorDataset(io.TensorDataset):
    """Example i is row i of each of several Tensors."""

    def __init__(self, *tensors: Any):
        super().__init__(tensors)


class BatchSampler(io.BatchSampler):
    """Lists of `batch_size` indices from another sampler; a shorter last one can be dropped."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        super().__init__(None, sampler, False, batch_size, drop_last)


class DataLoader(io.DataLoader):
    """Iterate over a data set in batches: the fields of examples, stacked, as Tensors.

    The calling thread prepares them: settings of workers and of pinned memory have no effect.
    """

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
        if shuffle and (sampler is not None or isinstance(dataset, io.IterableDataset)):
            raise _LoaderError(
                "DataLoader: a sampler or a stream decides in which order examples come; leave shuffle out"
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise _LoaderError(
                "DataLoader: a batch_sampler says itself what batch_size, shuffle, sampler and drop_last say"
            )
        sizes: dict[str, Any] = {"batch_size": batch_size}
        self.sampler = sampler
        if isinstance(dataset, io.IterableDataset):
            sizes["drop_last"] = drop_last
        elif batch_sampler is None and batch_size is not None:
            if sampler is None:
                self.sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        super().__init__(
            dataset,
            batch_sampler=batch_sampler,
            **({} if batch_sampler is not None else sizes),
            collate_fn=collate_fn or (default_convert if batch_size is None else default_collate),
            num_workers=num_workers,
        )
        self.batch_size, self.drop_last = batch_size, drop_last


def default_collate(batch: Sequence[Any]) -> Any:
    """Stack numbers, arrays and Tensors into a Tensor along a new first axis; put text into a list."""
    return default_convert(io.default_collate_fn(batch))


def default_convert(data: Any) -> Any:
    """Turn arrays into Tensors, in whatever lists and dictionaries they are."""
    return as_tensors(data, CREATORS["as_tensor"])
