"""`data_parallel`: a Program for one process rewritten for one rank of many, each of which has a part of every batch.

Where gradients go over to the update, operators are inserted that add them up over the ranks. In the shape `allreduce`
every rank then makes the update. In the shape `pserver` the first rank alone does, as a parameter server; the others,
which have no optimiser, send it their gradients and receive the new parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from app.dist import operators as together
from app.dist.messages import BUCKET
from app.dist.rewriting import COMMUNICATION, Place, Rewriting, Shape, forget_unused, of_batch, seed_of, startup_of
from app.graph.program import OPTIMIZE, Operator, Program
from app.ops.arithmetic import multiply
from app.ops.dtype import is_float
from app.ops.rounding import ceil


def data_parallel(
    program: Program,
    startup: Program,
    place: Place,
    shape: Shape = "allreduce",
    *,
    loss: str | None = None,
    means: Sequence[str] = (),
    totals: Sequence[str] = (),
    bucket: int = BUCKET,
) -> tuple[Program, Program]:
    """The main and the startup Program of one rank.

    `loss` names what the backward pass is of, if there is one. `means` and `totals` name figures of the batch, such as
    the accuracy and a count, of which every rank is to have those of the whole batch. Arrays of fewer bytes than
    `bucket` travel together.
    """
    if place.size == 1 or shape == "none":
        return program, startup
    main = _OfRank(program, place, shape, bucket).main(loss, list(means), list(totals))
    return main, startup_of(startup, program, [main], place, bucket)


def at_other_ranks(program: Program, here: Sequence[Program]) -> set[str]:
    """What lasts of a Program and the Programs for one rank have not, as a parameter server has it."""
    lasting = {v.name for v in program.list_vars() if v.persistable}
    return lasting - {v.name for each in here for v in each.list_vars()}


class _OfRank(Rewriting):
    """The main Program of a rank on its way."""

    def main(self, loss: str | None, means: list[str], totals: list[str]) -> Program:
        """The main Program of the rank."""
        seed = seed_of(self.source, loss)
        runs = [(key, list(ops)) for key, ops in groupby(self.source.ops, key=lambda op: op.role == OPTIMIZE)]
        last = max((i for i, (updates, _) in enumerate(runs) if updates), default=len(runs))
        before: list[Operator] = []
        for i, (updates, ops) in enumerate(runs):
            if updates:
                self._update(ops, before, seed, self._reported(means, totals) if i == last else [])
                continue
            for op in ops:
                if op is seed:
                    self.begin_with_share(op)
                else:
                    self.copy(op)
            before += ops
        if last == len(runs):
            self.insert(together.all_reduce, self._reported(means, totals))
        return self.result if self.updates_here else forget_unused(self.result)

    def _update(self, ops: list[Operator], before: list[Operator], seed: Operator | None, report: list[str]) -> None:
        """The collectives around an update: before it, of what it reads of the batch; after it, of what it changed."""
        varying, weighted = of_batch(self.source, before, seed)
        changed = {n for op in ops for n in op.outputs if self.persists(n)}
        read = [n for op in ops for n in op.inputs if n in varying and not self.persists(n)]
        running = [n for op in before for n in op.outputs if n in varying and self.persists(n) and n not in changed]
        sums = [n for n in dict.fromkeys([*read, *running]) if is_float(self.block.var(n).dtype) and n not in report]
        self.weighted([n for n in sums if n not in weighted])
        self.gather([*sums, *report])
        if self.updates_here:
            for op in ops:
                self.copy(op)
        if self.shape == "pserver":
            self.send_back(ops, [*running, *report])

    def copy(self, op: Operator) -> None:
        super().copy(op)
        copied = self.block.ops[-1]
        stream = copied.attributes.get("seed")
        if stream is not None and self.place.rank:  # each rank drops others of its neurons than the ranks beside it
            copied.attributes["seed"] = (stream[0], stream[1] + (self.place.rank << 32))

    def _reported(self, means: list[str], totals: list[str]) -> list[str]:
        """Prepare figures for being added up over the ranks: a rank without rows has nothing to add to a total."""
        for name in totals:
            variable = self.block.var(name)
            counts = self.block.create_var(f"{name}.counts", (), variable.dtype, stop_gradient=True).name
            self.append(ceil, [self.share(variable.dtype)], [counts])
            self.append(multiply, [name, counts], [name])
        return [*self.weighted(means), *totals]
