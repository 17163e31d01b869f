"""`data_parallel`: a Program for one process, rewritten for one rank of many, which has a part of every batch.

The loss is a mean over the batch. Of the gradients of the ranks the mean is taken, each weighted by `rows of the rank *
ranks / rows of all`: the backward pass starts from that weight instead of 1. Two passes put collectives around the
update. With `allreduce` every rank has the mean and makes the update. With `pserver` rank 0, the parameter server,
makes it; the others, the trainers, send it their gradients and receive the parameters.

With `allreduce`, an update that only subtracts a multiple of a gradient from its parameter is made before the mean is
taken, of the parameters: the mean of W - r g1 and W - r g2. The engine can then make it a part of the matrix product
that computes the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal, Protocol

from app.errors import ProgramError
from app.graph.program import BACKWARD, OPTIMIZE, Block, Operator, Program
from app.graph.variable import Parameter
from app.ops.arithmetic import multiply
from app.ops.definition import OpDef
from app.ops.dtype import is_float
from app.ranks import operators
from app.ranks.messages import BUCKET

COMMUNICATION = "communication"
"""The role of inserted operators."""

WEIGHT = "weight_of_rank"
"""The prefix of the variables that hold the weight of a rank, one for each element type."""

Shape = Literal["none", "allreduce", "pserver"]


class Place(Protocol):
    """A rank and the number of ranks, all that the passes need of a World."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...


def data_parallel(
    program: Program, place: Place, shape: Shape = "allreduce", *, loss: str, bucket: int = BUCKET
) -> Program:
    """The Program of one rank. `loss` is what is minimised; arrays of fewer bytes than `bucket` travel together."""
    if place.size == 1 or shape == "none":
        return program
    return (_AllReduce if shape == "allreduce" else _ParameterServer)(program, place, bucket).rewritten(loss)


def statistics_of(program: Program) -> list[str]:
    """State that a Program updates with each batch besides parameters, such as the running means of BatchNorm."""
    block = program.global_block()
    ops = [op for op in block.ops if op.role not in (OPTIMIZE, COMMUNICATION)]
    varying = _descendants(ops, [v.name for v in block.vars.values() if v.is_data])
    kept = [n for op in ops for n in op.outputs if n in varying and block.var(n).persistable]
    return [n for n in dict.fromkeys(kept) if is_float(block.var(n).dtype)]


class _Pass:
    """Builds the Program of a rank by copying the operators of the source."""

    def __init__(self, program: Program, place: Place, bucket: int):
        self.source = program.global_block()
        self.result = program.clone_without_operators()
        self.block = self.result.global_block()
        self.place, self.bucket = place, bucket

    def rewritten(self, loss: str) -> Program:
        """Copy all operators, with collectives around each run of updates."""
        seed = _seed_of(self.source, loss)
        before: list[Operator] = []
        for updates, group in groupby(self.source.ops, key=lambda op: op.role == OPTIMIZE):
            ops = list(group)
            if updates:
                self.update(ops, *self._read(ops, before, seed))
                continue
            for op in ops:
                if op is seed:
                    self._begin_with_weight(op)
                else:
                    self._copy(op)
            before += ops
        return self.result

    def update(self, ops: list[Operator], gradients: list[str], others: list[str]) -> None:
        """Add updates, which read gradients and other values of the batch, with the collectives around them."""
        raise NotImplementedError

    def _read(self, ops: list[Operator], before: list[Operator], seed: Operator) -> tuple[list[str], list[str]]:
        """The values of a batch that updates read: gradients, and values that are not weighted yet."""
        weighted = _descendants(before, seed.outputs)
        varying = weighted | _descendants(before, [v.name for v in self.source.vars.values() if v.is_data])
        read = dict.fromkeys(n for op in ops for n in op.inputs if n in varying and not self.persists(n))
        read_floats = [n for n in read if is_float(self.block.var(n).dtype)]
        others = [n for n in read_floats if n not in weighted]
        for name in others:
            self._weigh(name, name)
        return [n for n in read_floats if n in weighted], others

    def _copy(self, op: Operator) -> None:
        copied = op.copied_into(self.block)
        self.block.ops.append(copied)
        stream = copied.attributes["seed"] if op.definition.random else None
        if stream is not None and self.place.rank:  # each rank draws its own random numbers
            copied.attributes["seed"] = (stream[0], stream[1] + (self.place.rank << 32))

    def _begin_with_weight(self, seed: Operator) -> None:
        """Begin the backward pass with the weight of the rank instead of 1."""
        gradient = self.block.var(seed.outputs[0])
        one = self.block.create_var(f"{gradient.name}.one", gradient.shape, gradient.dtype, stop_gradient=True).name
        self.block.ops.append(Operator(seed.definition, seed.inputs, [one], seed.attributes, seed.role))
        self._weigh(one, gradient.name, seed.role)

    def _weigh(self, value: str, result: str, role: str = COMMUNICATION) -> None:
        dtype = self.block.var(value).dtype
        weight = self.block.create_var(f"{WEIGHT}.{dtype}", (), dtype, persistable=True, stop_gradient=True).name
        self.block.ops.append(Operator(multiply, [value, weight], [result], {}, role))

    def insert(self, collective: OpDef, names: Iterable[str]) -> None:
        """Add an in-place collective over values."""
        if names := list(names):
            changed = names if collective.infer_outputs([self.block.var(n).spec for n in names], {}) else []
            self.block.ops.append(Operator(collective, names, changed, {"bucket": self.bucket}, COMMUNICATION))

    def copy_all(self, ops: Iterable[Operator]) -> None:
        """Add operators of the source."""
        for op in ops:
            self._copy(op)

    def persists(self, name: str) -> bool:
        """Whether a variable keeps its value from batch to batch."""
        return self.block.var(name).persistable


class _AllReduce(_Pass):
    """Every rank makes the update."""

    def update(self, ops: list[Operator], gradients: list[str], others: list[str]) -> None:
        if _only_subtracts(self.source):
            self.copy_all(ops)
            self.insert(operators.average, dict.fromkeys(n for op in ops for n in op.outputs))
        else:
            self.insert(operators.average, [*gradients, *others])
            self.copy_all(ops)


class _ParameterServer(_Pass):
    """Rank 0 makes the update and sends what changed: parameters, and other values that the forward pass reads."""

    def update(self, ops: list[Operator], gradients: list[str], others: list[str]) -> None:
        changed = {n for op in ops for n in op.outputs if self.persists(n)}
        used = {n for op in self.source.ops if op.role != OPTIMIZE for n in op.inputs}
        new = [n for n, v in self.source.vars.items() if n in changed and (n in used or isinstance(v, Parameter))]
        if self.place.rank == 0:
            self.insert(operators.receive_gradients, [*gradients, *others])
            self.copy_all(ops)
            self.insert(operators.send_parameters, [*new, *others])
        else:
            self.insert(operators.send_gradients, [*gradients, *others])
            self.insert(operators.receive_parameters, [*new, *others])


def _seed_of(block: Block, loss: str) -> Operator:
    """The first operator of the backward pass of a loss."""
    name = block.var(loss).grad_name
    gradients: set[str] = set()
    for op in block.ops:
        if op.role == BACKWARD:
            if op.outputs == (name,) and gradients.isdisjoint(filter(None, op.inputs)):
                return op
            gradients.update(op.outputs)
    raise ProgramError(f"{loss} has no backward pass to share between ranks: minimize it first, or name another loss")


def _descendants(ops: Sequence[Operator], names: Iterable[str]) -> set[str]:
    """Some variables and all that depend on them."""
    found = set(names)
    for op in ops:
        if not found.isdisjoint(filter(None, op.inputs)):
            found.update(op.outputs)
    return found


def _only_subtracts(block: Block) -> bool:
    """Whether all updates of a Program subtract a multiple of a gradient from a parameter."""
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
