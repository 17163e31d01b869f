"""Running Programs of a world of ranks: each dataset is cut down to what this rank has of every batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.data import Batches
from app.dist import world
from app.dist.cores import one_thread
from app.dist.operators import average
from app.dist.pieces import InPieces
from app.dist.rewriting import Place, Shape, is_share, share_said_by
from app.dist.shards import Shard, pieces_of, shards
from app.engine import Executor, Scope
from app.engine.settled import Settled
from app.engine.reference import stacked
from app.graph.program import Program
from app.graph.variable import Variable

Names = Sequence[Variable | str]


class RankExecutor(Executor):
    """An Executor that is given the batches of all ranks, and runs a rank's Program on its shares of them."""

    def __init__(self, place: Place, engine: str = "reference", shape: Shape = "allreduce"):
        super().__init__(engine=engine)
        self._place = place
        self._settled = Settled(lambda like: world.current().rooms(like))
        self._by_rows = shape == "rows" and place.size > 1
        if self._by_rows:
            from app.engine.compiled.engine import CompiledEngine  # imported late, as Numba is

            self._engine = CompiledEngine(world.current())

    def train_from_dataset(  # type: ignore[override]  # shares are cut of what lies in arrays alone
        self, program: Program | InPieces, dataset: Batches, feed_list: Names, fetch_list: Names, scope: Scope
    ) -> list[np.ndarray]:
        """Run a Program on the rank's share of every batch; gives each fetched variable's value at each batch."""
        if isinstance(program, InPieces):
            return self._in_pieces(program, dataset, feed_list, fetch_list, scope)
        if self._place.size == 1 or self._by_rows:
            return super().train_from_dataset(program, dataset, feed_list, fetch_list, scope)
        parts = [self._on(shard, program, feed_list, fetch_list, scope) for shard in shards(dataset, self._place)]
        return [np.concatenate(values) for values in zip(*parts, strict=True)]

    def _in_pieces(
        self, program: InPieces, dataset: Batches, feed_list: Names, fetch_list: Names, scope: Scope
    ) -> list[np.ndarray]:
        """Run the rank's pieces of every batch, and after each batch what makes one of them."""
        for name in program.sums:  # anew: in the middle of a batch, something may have failed
            total = program.piece.global_block().var(name)
            scope.values[name] = np.zeros(total.shape, total.dtype)
        rows: list[list[Any]] = []
        with one_thread():
            for index in range(len(dataset)):
                for shard in pieces_of(dataset[index : index + 1], self._place, program.pieces):
                    self._on(shard, program.piece, feed_list, (), scope)
                rows.append(super().run(program.batch, fetch_list=fetch_list, scope=scope))
        return stacked(rows, len(fetch_list))

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
