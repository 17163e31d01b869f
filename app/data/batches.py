"""The order of the images in an epoch, and its batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from app.errors import DataError

Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]


def epoch_order(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    """The shuffled order of one epoch, a function of its arguments only, so that a run can be resumed."""
    # A spawn key, because (seed, epoch) as plain entropy would let some pairs collide.
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch,)))
    return random.permutation(count).astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class Batches:
    """Images and labels, `batch_size` at a time in `order` (None: as they are stored), the last batch smaller.

    A sequence whose items are gathered when asked for; `batches[100:200]` is again Batches. The fields are
    public so that a compiled engine can take the arrays themselves and gather natively.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    order: NDArray[np.int64] | None
    batch_size: int

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise DataError(f"a batch must hold at least 1 image, found batch_size = {self.batch_size}")
        if len(self.images) != len(self.labels):
            raise DataError(f"batches of {len(self.images):,} images but {len(self.labels):,} labels")
        # Checked once here, because native code that gathers does not check.
        if self.order is not None and self.order.size:
            if self.order.dtype.kind not in "iu":
                raise DataError(
                    f"an order of rows must be integers, found {self.order.dtype}; np.flatnonzero(mask) gives those of "
                    "a mask"
                )
            first, last = self.order.min(), self.order.max()
            if first < 0 or last >= len(self.images):
                raise DataError(f"an order of rows {first} to {last} for {len(self.images):,} images")

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The arrays that batches are gathered from."""
        return self.images, self.labels

    @property
    def count(self) -> int:
        """The number of images in all batches."""
        return len(self.images) if self.order is None else len(self.order)

    def __len__(self) -> int:
        return -(-self.count // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        return (self[index] for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> Batches: ...
    def __getitem__(self, index: int | slice) -> Batch | Batches:
        if isinstance(index, slice):
            return self._between(range(len(self))[index])
        start = range(len(self))[index] * self.batch_size  # range handles negative indices and the end
        rows = slice(start, start + self.batch_size)
        if self.order is None:
            return self.images[rows], self.labels[rows]
        chosen = self.order[rows]
        return self.images.take(chosen, axis=0), self.labels.take(chosen, axis=0)  # faster than indexing

    def _between(self, batches: range) -> Batches:
        if batches.step != 1:
            raise DataError(f"batches can be sliced with step 1 only, found step {batches.step}")
        rows = slice(batches.start * self.batch_size, batches.stop * self.batch_size)
        if self.order is None:
            return replace(self, images=self.images[rows], labels=self.labels[rows])
        return replace(self, order=self.order[rows])
