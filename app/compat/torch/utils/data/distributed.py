"""torch.utils.data.distributed"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.compat.missing import missing
from app.io import Sampler
from app.ranks.current import place
from app.ranks.world import DistError

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """The examples of one rank. All ranks get equally many; `seed` and `set_epoch` choose the order."""

    def __init__(
        self,
        dataset: Any,
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
            raise DistError(f"DistributedSampler: there is no rank {self.rank} among {self.num_replicas}")
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self._count = len(dataset)
        self.num_samples = (self._count if drop_last else self._count + self.num_replicas - 1) // self.num_replicas
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = np.arange(self._count)
        if self.shuffle:
            order = np.random.default_rng(self.seed + self.epoch).permutation(self._count)
        dealt = np.resize(order, self.total_size)[self.rank :: self.num_replicas]
        return iter(dealt.tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass."""
        self.epoch = epoch


__getattr__ = missing(__name__)
