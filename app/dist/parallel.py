"""`data_parallel`: a Program for one process rewritten for one rank of many, each of which has a part of every batch.

Where gradients go over to the update, operators are inserted that add them up over the ranks. In the shape `allreduce`
every rank then makes the update. In the shape `pserver` the first rank alone does, as a parameter server; the others,
which have no optimiser, send it their gradients and receive the new parameters.

An update that subtracts a multiple of each gradient from its parameter, and no more, comes out the same if each rank
makes it with its own gradient times the number of ranks, and the mean of all is taken: W - r (g1 + g2) is the mean of
W - 2 r g1 and W - 2 r g2. In the shape `allreduce` that is what is done, as a rank can then make the update in the
product that gives the gradient, which is never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from app.dist import operators as together
from app.dist.messages import BUCKET
from app.dist.rewriting import (
    COMMUNICATION,
    SHARE,
    SHARE_TIMES_RANKS,
    Place,
    Rewriting,
    Shape,
    forget_unused,
    of_batch,
    seed_of,
    startup_of,
)
from app.graph.program import OPTIMIZE, Block, Operator, Program
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
        self.averages = self.shape == "allreduce" and not totals and _only_subtracts(self.source)
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
        changed = dict.fromkeys(n for op in ops for n in op.outputs if self.persists(n))
        read = [n for op in ops for n in op.inputs if n in varying and not self.persists(n)]
        running = [n for op in before for n in op.outputs if n in varying and self.persists(n) and n not in changed]
        sums = [n for n in dict.fromkeys([*read, *running]) if is_float(self.block.var(n).dtype) and n not in report]
        self.weighted([n for n in sums if n not in weighted])
        if not self.averages:
            self.gather([*sums, *report])
        if self.updates_here:
            for op in ops:
                self.copy(op)
        if self.averages:
            self.insert(together.average, [*changed, *running, *report])
        if self.shape == "pserver":
            self.send_back(ops, [*running, *report])

    def copy(self, op: Operator) -> None:
        super().copy(op)
        copied = self.block.ops[-1]
        stream = copied.attributes["seed"] if op.definition.random else None
        if stream is not None and self.place.rank:  # each rank drops others of its neurons than the ranks beside it
            copied.attributes["seed"] = (stream[0], stream[1] + (self.place.rank << 32))

    def share(self, dtype: str) -> str:
        """The variable of the share; of what is averaged, each rank's share counts as many times as there are ranks."""
        return self.share_in(SHARE_TIMES_RANKS if self.averages else SHARE, dtype)

    def _reported(self, means: list[str], totals: list[str]) -> list[str]:
        """Prepare figures for being added up over the ranks: a rank without rows has nothing to add to a total."""
        for name in totals:
            variable = self.block.var(name)
            counts = self.block.create_var(f"{name}.counts", (), variable.dtype, stop_gradient=True).name
            self.append(ceil, [self.share(variable.dtype)], [counts])
            self.append(multiply, [name, counts], [name])
        return [*self.weighted(means), *totals]


def _only_subtracts(block: Block) -> bool:
    """Whether a Program ends with updates, each of which is a parameter less a multiple of what the batch gives."""
    updates = [op for op in block.ops if op.role == OPTIMIZE]
    before = block.ops[: len(block.ops) - len(updates)]
    computed = {name for op in before for name in op.outputs}

    def subtracts(op: Operator) -> bool:
        form = op.definition.accumulates
        if form is None:
            return False
        base, scale, term = (op.inputs[place] for place in form.places(op.definition.inputs))
        kept = base is not None and block.var(base).persistable and base not in computed
        return kept and op.outputs == (base,) and scale not in computed and term in computed

    return bool(updates) and block.ops[len(before) :] == updates and all(map(subtracts, updates))
