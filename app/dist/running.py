"""Running Programs of a world of ranks: each dataset is cut down to what this rank has of every batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.data import Batches
from app.dist.parallel import Place, is_share
from app.dist.shards import shards
from app.engine import Executor, Scope
from app.graph.program import Program, Variable


class RankExecutor(Executor):
    """An Executor that is given the batches of all ranks, and runs a rank's Program on its shares of them."""

    def __init__(self, place: Place, engine: str = "reference"):
        super().__init__(engine=engine)
        self._place = place

    def train_from_dataset(  # type: ignore[override]  # shares are cut of what lies in arrays alone
        self,
        program: Program,
        dataset: Batches,
        feed_list: Sequence[Variable | str],
        fetch_list: Sequence[Variable | str],
        scope: Scope,
    ) -> list[np.ndarray]:
        """Run a Program on the rank's share of every batch; gives each fetched variable's value at each batch."""
        if self._place.size == 1:
            return super().train_from_dataset(program, dataset, feed_list, fetch_list, scope)
        parts: list[Any] = []
        for share, batches in shards(dataset, self._place):
            for name, variable in program.global_block().vars.items():
                if is_share(name):
                    scope.values[name] = np.asarray(share, variable.dtype)
            parts.append(super().train_from_dataset(program, batches, feed_list, fetch_list, scope))
        return [np.concatenate(values) for values in zip(*parts, strict=True)]
