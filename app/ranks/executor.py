"""Running the Program of a rank: on its part of every batch, with the figures of whole batches as results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from app.data import Batches
from app.engine import Executor, Scope
from app.graph.program import Program
from app.graph.variable import Parameter
from app.ranks.data_parallel import WEIGHT, Place
from app.ranks.messages import BUCKET, in_messages
from app.ranks.operators import average
from app.ranks.world import World


class RankExecutor(Executor):
    """An Executor for one rank. It is given whole batches and runs its part."""

    def __init__(self, world: World, engine: str = "reference", sparse: bool = True):
        super().__init__(engine=engine, sparse=sparse)
        self._world = world
        self._shared: dict[str, np.ndarray] = {}

    def start(self, startup: Program, main: Program, scope: Scope) -> None:
        """Initialise the variables of a rank's Program; parameters get the values of rank 0."""
        self.run(startup, scope=scope)
        if self._world.size == 1:
            return
        names = [v.name for v in main.list_vars() if isinstance(v, Parameter)]
        parameters = {name: np.array(scope.values[name], order="C") for name in names}
        in_messages(list(parameters.values()), BUCKET, self._world.broadcast)()
        scope.values.update(parameters)
        averaged = _averaged(main, scope)
        arrays = self._world.shared([scope.values[name] for name in averaged])
        if arrays is not None:
            self._shared = dict(zip(averaged, arrays, strict=True))
            for name in averaged:
                self.put(scope, name, scope.values[name])

    def put(self, scope: Scope, name: str, value: np.ndarray) -> None:
        """Set a variable. Parameters in shared memory stay there."""
        if name in self._shared:
            self._shared[name][...] = value
            value = self._shared[name]
        scope.values[name] = value

    def run_batches(
        self,
        program: Program,
        batches: Batches,
        feeds: Sequence[str],
        means: Sequence[str],
        scope: Scope,
    ) -> list[np.ndarray]:
        """Run a Program on the rank's part of every batch; gives the means over the rows of each whole batch, such as
        the loss, at every rank."""
        if self._world.size == 1:
            return self.train_from_dataset(program, batches, feeds, means, scope)
        parts = []
        for share, part in shards(batches, self._world):
            for name, variable in program.global_block().vars.items():
                if name.startswith(WEIGHT):
                    scope.values[name] = np.asarray(share * self._world.size, variable.dtype)
            found = self.train_from_dataset(program, part, feeds, means, scope)
            parts.append([figure * np.float64(share) for figure in found])
        figures = [np.concatenate(of_shards) for of_shards in zip(*parts, strict=True)]
        in_messages(figures, BUCKET, self._world.allreduce)()
        return [figure.astype(value.dtype) for figure, value in zip(figures, found, strict=True)]


def _averaged(program: Program, scope: Scope) -> list[str]:
    """The parameters that a Program averages and that are sent in messages of their own."""
    ops = [op for op in program.global_block().ops if op.definition is average]
    names = [(name, op.attributes["bucket"]) for op in ops for name in op.outputs if name in scope.values]
    return [name for name, bucket in names if scope.values[name].nbytes >= bucket]


class Shard(NamedTuple):
    """A rank's part of batches of one size."""

    share: float
    """Rows of the rank over rows of the batch. It is 0 where a rank has none: it then computes on the first row, as a
    user's operator need not expect a batch without rows."""
    batches: Batches


def rows_of(count: int, place: Place) -> tuple[int, int]:
    """The first of a rank's rows among the `count` of a batch, and how many there are."""
    least, more = divmod(count, place.size)
    return place.rank * least + min(place.rank, more), least + (place.rank < more)


def shards(batches: Batches, place: Place) -> Iterator[Shard]:
    """A rank's part of every batch in order: of all full batches, and of a smaller last one."""
    full = batches.count // batches.batch_size
    if full:
        yield _shard(batches[:full], full, batches.batch_size, place)
    if full < len(batches):
        yield _shard(batches[full:], 1, batches.count - full * batches.batch_size, place)


def _shard(batches: Batches, many: int, count: int, place: Place) -> Shard:
    """A rank's part of batches of `count` rows each."""
    first, mine = rows_of(count, place)
    order = np.arange(batches.count) if batches.order is None else batches.order
    rows = order.reshape(many, count)[:, first : first + mine] if mine else order.reshape(many, count)[:, :1]
    part = Batches(batches.images, batches.labels, np.ascontiguousarray(rows).reshape(rows.size), max(mine, 1))
    return Shard(mine / count, part)
