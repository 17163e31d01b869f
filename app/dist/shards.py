"""Which rows of every batch are a rank's, or a piece's: the first have one more where not all can have as many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from app.data import Batches
from app.dist.rewriting import Place


class Shard(NamedTuple):
    """A rank's part of batches that are alike in size, or pieces of one batch that are."""

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


class _Piece(NamedTuple):
    """Which of how many pieces, as if each were a rank's."""

    rank: int
    size: int


def pieces_of(batch: Batches, place: Place, pieces: int) -> Iterator[Shard]:
    """A rank's pieces of a batch, those that are alike in size together; pieces without rows are left out."""
    each = pieces // place.size
    numbers = range(place.rank * each, min((place.rank + 1) * each, batch.count))
    mine = [rows_of(batch.count, _Piece(number, pieces)) for number in numbers]
    order = np.arange(batch.count) if batch.order is None else batch.order
    for size, alike in groupby(mine, key=lambda rows: rows[1]):
        (first, _), *others = alike
        rows = np.ascontiguousarray(order[first : first + size * (1 + len(others))])
        yield Shard(size / batch.count, Batches(batch.images, batch.labels, rows, size))


def _shard(batches: Batches, many: int, count: int, place: Place) -> Shard:
    """A rank's part of so many batches of `count` rows each."""
    first, mine = rows_of(count, place)
    order = np.arange(batches.count) if batches.order is None else batches.order
    rows = order.reshape(many, count)[:, first : first + mine] if mine else order.reshape(many, count)[:, :1]
    part = Batches(batches.images, batches.labels, np.ascontiguousarray(rows).reshape(rows.size), max(mine, 1))
    return Shard(mine / count, part)
