"""`data_parallel`: a Program for one process rewritten for one rank of many, each of which has a part of every batch.

The loss is a mean over the batch, and that of the whole batch is the sum of what the ranks have, each weighted by its
share of the rows. So the backward pass starts from the share, in the place of 1, and where gradients go over to the
update, operators are inserted that add them up over the ranks. In the shape `allreduce` every rank then makes the
update. In the shape `pserver` the first rank alone does, as a parameter server; the others, which have no optimiser,
send it their gradients and receive the new parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal, Protocol

from app.dist import operators as together
from app.dist.messages import BUCKET
from app.errors import ProgramError
from app.graph.program import BACKWARD, OPTIMIZE, Block, Operator, Parameter, Program
from app.ops.arithmetic import multiply
from app.ops.creation import fill_constant
from app.ops.definition import OpDef
from app.ops.dtype import is_float
from app.ops.rounding import ceil

COMMUNICATION = "communication"
"""The role of the operators that are inserted."""

SHARE = "share_of_batch"
"""The variable that says which share of the batch a rank has; whoever runs the Program sets it in the scope."""

Shape = Literal["none", "allreduce", "pserver"]


class Place(Protocol):
    """Which of how many ranks a Program is for: all that a World is asked here."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...


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
    main = _Rewriting(program, place, shape, bucket).main(loss, list(means), list(totals))
    return main, _startup(startup, program, main, bucket)


def is_share(name: str) -> bool:
    """Whether a variable says which share of the batch a rank has."""
    return name.partition(".")[0] == SHARE


def at_other_ranks(program: Program, here: Program) -> set[str]:
    """What lasts of a Program and its version for one rank has not, as a parameter server has it."""
    lasting = {v.name for v in program.list_vars() if v.persistable}
    return lasting - {v.name for v in here.list_vars()}


class _Rewriting:
    """The main Program on its way: operators of the one are copied into the other, and more come between them."""

    def __init__(self, program: Program, place: Place, shape: Shape, bucket: int):
        self.source = program.global_block()
        self.result = program.clone_without_operators()
        self.block = self.result.global_block()
        self.place, self.shape, self.bucket = place, shape, bucket
        self.updates_here = shape == "allreduce" or place.rank == 0

    def main(self, loss: str | None, means: list[str], totals: list[str]) -> Program:
        """The main Program of the rank."""
        seed = None if loss is None else _seed(self.source, loss)
        runs = [(key, list(ops)) for key, ops in groupby(self.source.ops, key=lambda op: op.role == OPTIMIZE)]
        last = max((i for i, (updates, _) in enumerate(runs) if updates), default=len(runs))
        before: list[Operator] = []
        weighted = set() if seed is None else _descendants(self.source.ops, seed.outputs)
        for i, (updates, ops) in enumerate(runs):
            if updates:
                self._update(ops, before, weighted, self._reported(means, totals) if i == last else [])
                continue
            for op in ops:
                if op is seed:
                    self._begin_with_share(op)
                else:
                    self._copy(op)
            before += ops
        if last == len(runs):
            self._insert(together.all_reduce, self._reported(means, totals))
        if not self.updates_here:
            _forget_unused(self.result)
        return self.result

    def _update(self, ops: list[Operator], before: list[Operator], weighted: set[str], report: list[str]) -> None:
        """The collectives around an update: before it, of what it reads of the batch; after it, of what it changed."""
        of_batch = _descendants(before, [v.name for v in self.source.vars.values() if v.is_data])
        changed = {n for op in ops for n in op.outputs if self._persists(n)}
        read = [n for op in ops for n in op.inputs if n in of_batch and not self._persists(n)]
        running = [n for op in before for n in op.outputs if n in of_batch and self._persists(n) and n not in changed]
        sums = [n for n in dict.fromkeys([*read, *running]) if is_float(self.block.var(n).dtype) and n not in report]
        self._weighted([n for n in sums if n not in weighted])
        sums += report
        if self.shape == "allreduce":
            self._insert(together.all_reduce, sums)
        else:
            self._insert(together.receive_gradients if self.updates_here else together.send_gradients, sums)
        if self.updates_here:
            for op in ops:
                self._copy(op)
        if self.shape == "pserver":
            used = {n for op in self.source.ops if op.role != OPTIMIZE for n in op.inputs}
            new = [n for n in self.source.vars if n in changed and (n in used or self._is_parameter(n))]
            given = dict.fromkeys([*new, *running, *report])
            self._insert(together.send_parameters if self.updates_here else together.receive_parameters, given)

    def _copy(self, op: Operator) -> None:
        copied = op.copied_into(self.block)
        stream = copied.attributes.get("seed")
        if stream is not None and self.place.rank:  # each rank drops others of its neurons than the ranks beside it
            copied.attributes["seed"] = (stream[0], stream[1] + (self.place.rank << 32))
        self.block.ops.append(copied)

    def _begin_with_share(self, seed: Operator) -> None:
        """Begin the backward pass with the rank's share, where it began with 1."""
        gradient = self.block.var(seed.outputs[0])
        whole = self.block.create_var(f"{gradient.name}.whole", gradient.shape, gradient.dtype, stop_gradient=True).name
        self.block.ops.append(Operator(seed.definition, seed.inputs, [whole], seed.attributes, seed.role))
        self._weigh(whole, gradient.name, seed.role)

    def _weigh(self, value: str, result: str, role: str = COMMUNICATION) -> None:
        """Multiply a value by the rank's share of the batch, into the variable that it is to go to."""
        share = _share(self.block, self.block.var(value).dtype)
        self.block.ops.append(Operator(multiply, [value, share], [result], {}, role))

    def _weighted(self, names: list[str]) -> list[str]:
        """Multiply values by the rank's share of the batch, where they stand."""
        for name in names:
            self._weigh(name, name)
        return names

    def _reported(self, means: list[str], totals: list[str]) -> list[str]:
        """Prepare figures for being added up over the ranks: a rank without rows has nothing to add to a total."""
        for name in totals:
            variable = self.block.var(name)
            counts = self.block.create_var(f"{name}.counts", (), variable.dtype, stop_gradient=True).name
            self.block.ops.append(Operator(ceil, [_share(self.block, variable.dtype)], [counts], {}, COMMUNICATION))
            self.block.ops.append(Operator(multiply, [name, counts], [name], {}, COMMUNICATION))
        return [*self._weighted(means), *totals]

    def _insert(self, definition: OpDef, names: Iterable[str]) -> None:
        """A collective over values; it changes them where they stand."""
        names = list(names)
        changed = names if definition.infer_outputs([self.block.var(n).spec for n in names], {}) else []
        if names:
            self.block.ops.append(Operator(definition, names, changed, {"bucket": self.bucket}, COMMUNICATION))

    def _persists(self, name: str) -> bool:
        return self.block.var(name).persistable

    def _is_parameter(self, name: str) -> bool:
        return isinstance(self.source.vars.get(name), Parameter)


def _seed(block: Block, loss: str) -> Operator:
    """The operator with which the backward pass of a loss begins."""
    name = block.var(loss).grad_name
    for op in block.ops:
        if op.role == BACKWARD and op.outputs == (name,):
            return op
    raise ProgramError(f"{loss} has no backward pass here to share out: minimize it first, or name another loss")


def _descendants(ops: Sequence[Operator], names: Iterable[str]) -> set[str]:
    """The variables that depend on some others."""
    found = set(names)
    for op in ops:
        if not found.isdisjoint(filter(None, op.inputs)):
            found.update(op.outputs)
    return found


def _share(block: Block, dtype: str) -> str:
    """The variable of the rank's share, in the element type of what is multiplied by it."""
    name = SHARE if dtype == "float32" else f"{SHARE}.{dtype}"
    return block.create_var(name, (), dtype, persistable=True, stop_gradient=True).name


def _forget_unused(program: Program) -> None:
    """Drop the variables that nothing needs any more, such as those of an optimiser that is elsewhere."""
    block = program.global_block()
    used = {n for op in block.ops for n in (*op.inputs, *op.outputs)}
    block.vars = {n: v for n, v in block.vars.items() if n in used or v.is_data}
    program.schedulers = {n: rate for n, rate in program.schedulers.items() if n in used}


def _startup(startup: Program, program: Program, main: Program, bucket: int) -> Program:
    """The startup Program of a rank: it gives what the rank needs its first value, and parameters those of rank 0."""
    result = startup.clone_without_operators()
    block, needed = result.global_block(), main.global_block().vars
    gone = program.global_block().vars.keys() - needed.keys()
    block.ops = [op.copied_into(block) for op in startup.global_block().ops if not gone.issuperset(op.outputs or [""])]
    block.vars = {n: v for n, v in block.vars.items() if n not in gone}
    for share in (v for v in needed.values() if is_share(v.name)):
        block.create_var(share.name, (), share.dtype, persistable=True)
        value = {"shape": (), "value": 1.0, "dtype": share.dtype}
        block.ops.append(Operator(fill_constant, [], [share.name], value, COMMUNICATION))
    first = [v.name for v in main.all_parameters() if v.name in block.vars]
    if first:
        block.ops.append(Operator(together.broadcast, first, first, {"bucket": bucket}, COMMUNICATION))
    return result
