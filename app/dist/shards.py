"""Which rows of every batch are a rank's: the first ranks have one more where not all can have as many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from app.data import Batches
from app.dist.rewriting import Place


class Shard(NamedTuple):
    """A rank's part of batches that are alike in size."""

    share: float
    """The rows of a part over those of its whole batch. It is 0 where a rank has none, and computes the first for form's
    sake: a batch without rows is nothing that an operator of a user's has to expect."""
    batches: Batches


def rows_of(count: int, place: Place) -> tuple[int, int]:
    """The first of a rank's rows among the `count` of a batch, and how many they are."""
    least, more = divmod(count, place.size)
    return place.rank * least + min(place.rank, more), least + (place.rank < more)


def shards(batches: Batches, place: Place) -> Iterator[Shard]:
    """A rank's part of every batch, in order: of the full ones together, and of the last one if that is smaller."""
    full = batches.count // batches.batch_size
    if full:
        yield _shard(batches[:full], full, batches.batch_size, place)
    if full < len(batches):
        yield _shard(batches[full:], 1, batches.count - full * batches.batch_size, place)


def _shard(batches: Batches, many: int, count: int, place: Place) -> Shard:
    """A rank's part of so many batches of `count` rows each."""
    first, mine = rows_of(count, place)
    order = np.arange(batches.count) if batches.order is None else batches.order
    rows = order.reshape(many, count)[:, first : first + mine] if mine else order.reshape(many, count)[:, :1]
    part = Batches(batches.images, batches.labels, np.ascontiguousarray(rows).reshape(rows.size), max(mine, 1))
    return Shard(mine / count, part)
