"""`in_pieces`: a Program rewritten so that training gives the same bits with any number of ranks.

Numbers that are added up in another order give another sum, and which rows are added up first depends on how many
ranks share them. So every batch is cut into so many pieces, whatever the number of ranks, and of each piece the same
is computed wherever that is. Gradients and figures are added up over pieces and ranks by `exact`, whose sums do not
depend on the order, and are rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.dist.exact import add_exactly
from app.dist.messages import BUCKET
from app.dist.rewriting import Place, Rewriting, Shape, forget_unused, of_batch, seed_of, startup_of
from app.errors import ConfigError, ProgramError
from app.graph.program import OPTIMIZE, Block, Operator, Program
from app.ops.arithmetic import add
from app.ops.creation import fill_constant
from app.ops.dtype import is_float
from app.ops.shaping import cast


class InPieces(NamedTuple):
    """A Program as a rank runs it: the one Program for each of its pieces of a batch, then the other."""

    piece: Program
    """Computes, and adds to the sums."""
    batch: Program
    """Takes the sums of all ranks, makes the update, and leaves sums of zero."""
    sums: tuple[str, ...]
    pieces: int
    """Of a batch, over all ranks."""


def in_pieces(
    program: Program,
    startup: Program,
    place: Place,
    shape: Shape = "none",
    *,
    pieces: int,
    loss: str | None = None,
    means: Sequence[str] = (),
    totals: Sequence[str] = (),
    bucket: int = BUCKET,
) -> tuple[InPieces, Program]:
    """The Programs and the startup Program of one rank, or of one process; otherwise as `data_parallel`."""
    check_pieces(pieces, place.size)
    piece = _OfPiece(program, place, shape, bucket)
    piece.compute(seed_of(piece.source, loss), list(means), list(totals))
    updates = any(op.role == OPTIMIZE for op in piece.source.ops)  # of a test, all ranks have the figures
    batch = _OfBatch(program, place, shape if updates else "allreduce", bucket)
    batch.update(piece.sums, [*means, *totals])
    sums = tuple(part for both in piece.sums.values() for part in both)
    here = InPieces(forget_unused(piece.result), forget_unused(batch.result), sums, pieces)
    return here, startup_of(startup, program, [here.piece, here.batch], place, bucket)


def programs_of(here: Program | InPieces) -> list[Program]:
    """What a rank runs, in order."""
    return [here.piece, here.batch] if isinstance(here, InPieces) else [here]


def check_pieces(pieces: int, ranks: int) -> None:
    """Refuse ranks that cannot have as many pieces each."""
    if pieces % ranks:
        fewer = max(n for n in range(1, ranks) if pieces % n == 0)
        raise ConfigError(
            f"{ranks} ranks cannot have as many of dist.pieces={pieces} each: start {fewer}, or another number of ranks "
            f"that divides {pieces}; or set dist.pieces to a multiple of {ranks}, and begin anew, as that gives other bits"
        )


class _OfPiece(Rewriting):
    """The Program of a piece: all but the update, and additions to sums."""

    sums: dict[str, list[str]]
    """The variables that are added up over the pieces, each with the two variables of its sum."""

    def compute(self, seed: Operator | None, means: list[str], totals: list[str]) -> None:
        """Copy what computes, and add up figures and what the update reads."""
        ops = [op for op in self.source.ops if op.role != OPTIMIZE]
        updates = self.source.ops[len(ops) :]
        self._check(ops, updates)
        varying, weighted = of_batch(self.source, ops, seed)
        for op in ops:
            if op is seed:
                self.begin_with_share(op)
            else:
                self.copy(op)
        computed = {n for op in ops for n in op.outputs}
        read = dict.fromkeys(n for op in updates for n in op.inputs if n in computed)
        for name in read:
            if name not in varying or not is_float(self.block.var(name).dtype):
                raise _cannot(f"its update reads {name}, which is no sum over the rows of a batch")
        figures = [*means, *totals]
        self.weighted([n for n in [*read, *means] if n not in weighted])
        self.sums = {name: self._added_up(name) for name in dict.fromkeys([*read, *figures])}

    def _check(self, ops: list[Operator], updates: list[Operator]) -> None:
        """Refuse what would depend on how pieces are dealt out."""
        if any(op.role != OPTIMIZE for op in updates):
            raise _cannot("it computes something else after its update")
        for op in (op for block in self.source.program.blocks for op in block.ops):
            if op.definition.draws_with(op.attributes):
                raise _cannot(f"{op.definition.label} draws random numbers, others at each rank")
        for name in (n for op in ops for n in op.outputs if self.persists(n)):
            raise _cannot(f"it changes {name} before its update, once for every piece")

    def _added_up(self, name: str) -> list[str]:
        """Add a value to its sum."""
        both = _sum_of(self.block, name)
        self.append(add_exactly, [*both, name], both)
        return both


class _OfBatch(Rewriting):
    """The Program of the batch: sums over the ranks, the update, and what it sends back."""

    def update(self, sums: dict[str, list[str]], report: list[str]) -> None:
        """Add up the sums over the ranks, round them, and copy what updates."""
        updates = [op for op in self.source.ops if op.role == OPTIMIZE]
        parts = [part for name in sums for part in _sum_of(self.block, name)]
        if self.place.size > 1:
            self.gather(parts)
        for name, both in sums.items():
            if self.updates_here or name in report:
                self._rounded(name, both)
        for op in updates if self.updates_here else ():
            self.copy(op)
        if self.place.size > 1 and self.shape == "pserver":
            self.send_back(updates, report)
        for part in parts:
            self.append(fill_constant, [], [part], shape=self.block.var(part).shape, value=0.0, dtype="float64")

    def _rounded(self, name: str, both: list[str]) -> None:
        """Make a sum the value that the update reads, or that is told."""
        value = self.block.var(name)
        wide = self.block.create_var(f"{name}.float64", value.shape, "float64", stop_gradient=True).name
        self.append(add, both, [wide])
        self.append(cast, [wide], [name], dtype=value.dtype)


def _sum_of(block: Block, name: str) -> list[str]:
    """The variables of the sum of a value."""
    shape = block.var(name).shape
    flags = {"persistable": True, "stop_gradient": True}
    return [block.create_var(f"{name}.{part}", shape, "float64", **flags).name for part in add_exactly.outputs]


def _cannot(why: str) -> ProgramError:
    return ProgramError(f"a Program cannot be run in pieces (dist.pieces) if {why}: set dist.pieces=null")
