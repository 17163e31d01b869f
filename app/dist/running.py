"""Running Programs of a world of ranks: each dataset is cut down to what this rank has of every batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.data import Batches
from app.dist import world
from app.dist.operators import average
from app.dist.rewriting import Place, is_share, share_said_by
from app.dist.settled import Settled
from app.dist.shards import Shard, shards
from app.engine import Executor, Scope
from app.graph.program import Program
from app.graph.variable import Variable

Names = Sequence[Variable | str]


class RankExecutor(Executor):
    """An Executor that is given the batches of all ranks, and runs a rank's Program on its shares of them."""

    def __init__(self, place: Place, engine: str = "reference"):
        super().__init__(engine=engine)
        self._place = place
        self._settled = Settled(lambda like: world.current().rooms(like))

    def train_from_dataset(  # type: ignore[override]  # shares are cut of what lies in arrays alone
        self, program: Program, dataset: Batches, feed_list: Names, fetch_list: Names, scope: Scope
    ) -> list[np.ndarray]:
        """Run a Program on the rank's share of every batch; gives each fetched variable's value at each batch."""
        if self._place.size == 1:
            return super().train_from_dataset(program, dataset, feed_list, fetch_list, scope)
        parts = [self._on(shard, program, feed_list, fetch_list, scope) for shard in shards(dataset, self._place)]
        return [np.concatenate(values) for values in zip(*parts, strict=True)]

    def _on(
        self, shard: Shard, program: Program, feed_list: Names, fetch_list: Names, scope: Scope
    ) -> list[np.ndarray]:
        """Run a Program on parts of batches that are alike."""
        for name, variable in program.global_block().vars.items():
            if is_share(name):
                share = share_said_by(name, shard.share, self._place.size)
                scope.values[name] = np.asarray(share, variable.dtype)
        self._settled.settle(_averaged(program, scope), scope)
        return super().train_from_dataset(program, shard.batches, feed_list, fetch_list, scope)


def _averaged(program: Program, scope: Scope) -> list[str]:
    """The parameters that a Program averages over the ranks, and that travel by themselves."""
    block = program.global_block()
    return [
        name
        for op in block.ops
        if op.definition is average
        for name in filter(None, op.inputs)
        if block.var(name).persistable and scope.values[name].nbytes >= op.attributes["bucket"]
    ]
