"""A rank's share of each batch: its rows, and what the ranks together compute of the whole batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from app.data import Batches
from app.engine import Executor, Scope
from app.graph.program import Program
from app.ranks.data_parallel import WEIGHT
from app.ranks.world import World


class Share(NamedTuple):
    """A rank's rows of batches of one size."""

    fraction: float
    """Rows of the rank over rows of the batch. It is 0 where a rank has none: it then computes on the first row, as a
    user's operator need not expect a batch without rows."""
    batches: Batches


def shares(batches: Batches, rank: int, size: int) -> Iterator[Share]:
    """A rank's share of every batch in order: of all full batches, and of a smaller last one."""
    full = batches.count // batches.batch_size
    if full:
        yield _share(batches[:full], full, batches.batch_size, rank, size)
    if full < len(batches):
        yield _share(batches[full:], 1, batches.count - full * batches.batch_size, rank, size)


def _share(batches: Batches, many: int, count: int, rank: int, size: int) -> Share:
    """A rank's share of batches of `count` rows each."""
    least, more = divmod(count, size)
    first, own = rank * least + min(rank, more), least + (rank < more)
    order = np.arange(batches.count) if batches.order is None else batches.order
    rows = order.reshape(many, count)[:, first : first + own] if own else order.reshape(many, count)[:, :1]
    part = Batches(batches.images, batches.labels, np.ascontiguousarray(rows).reshape(rows.size), max(own, 1))
    return Share(own / count, part)


def run_share(
    world: World,
    executor: Executor,
    program: Program,
    batches: Batches,
    feeds: Sequence[str],
    means: Sequence[str],
    scope: Scope,
) -> list[np.ndarray]:
    """Run a Program on the rank's share of every batch. Returns means over the rows of each whole batch, such as the
    loss, at every rank."""
    parts = []
    for fraction, part in shares(batches, world.rank, world.size):
        for name, variable in program.global_block().vars.items():
            if name.startswith(WEIGHT):
                scope.values[name] = np.asarray(fraction * world.size, variable.dtype)
        values = executor.train_from_dataset(program, part, feeds, means, scope)
        parts.append([value * np.float64(fraction) for value in values])
    totals = [np.concatenate(of_shares) for of_shares in zip(*parts, strict=True)]
    for total in totals:
        world.allreduce(total)
    return [total.astype(value.dtype) for total, value in zip(totals, values, strict=True)]
