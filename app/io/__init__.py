"""Data sets, samplers and loaders."""

from app.io.collate import default_collate_fn
from app.io.dataset import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from app.io.loader import DataLoader, get_worker_info
from app.io.sampler import (
    BatchSampler,
    DistributedBatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
)

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "Subset",
    "TensorDataset",
    "default_collate_fn",
    "get_worker_info",
    "random_split",
]


def __dir__() -> list[str]:
    return __all__
