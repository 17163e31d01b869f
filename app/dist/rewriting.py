"""How a Program for many ranks is made: operators of the Program of one process are copied, and more put between.

The loss is a mean over the batch, and that of the whole batch is the sum of what its parts have, each weighted by its
share of the rows. So the backward pass starts from the share, in the place of 1, and all that follows from there is a
part of a sum. What a part computes beside that, such as the loss itself, is multiplied by the share where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from app.dist import operators as together
from app.errors import ProgramError
from app.graph.program import BACKWARD, OPTIMIZE, Block, Operator, Program
from app.graph.variable import Parameter
from app.ops.arithmetic import multiply
from app.ops.creation import fill_constant
from app.ops.definition import OpDef

COMMUNICATION = "communication"
"""The role of the operators that are inserted."""

SHARE = "share_of_batch"
"""The variable that says which share of the batch is computed on; whoever runs the Program sets it in the scope."""

SHARE_TIMES_RANKS = "share_of_batch_times_ranks"
"""The same times the number of ranks, which is 1 wherever all have as many rows."""

Shape = Literal["none", "allreduce", "pserver"]


class Place(Protocol):
    """Which of how many ranks a Program is for: all that a World is asked here."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...


def is_share(name: str) -> bool:
    """Whether a variable says which share of the batch is computed on."""
    return name.partition(".")[0] in (SHARE, SHARE_TIMES_RANKS)


def share_said_by(name: str, share: float, ranks: int) -> float:
    """What such a variable has to say of a share."""
    return share * ranks if name.partition(".")[0] == SHARE_TIMES_RANKS else share


class Rewriting:
    """A Program of a rank on its way."""

    def __init__(self, program: Program, place: Place, shape: Shape, bucket: int):
        self.source = program.global_block()
        self.result = program.clone_without_operators()
        self.block = self.result.global_block()
        self.place, self.shape, self.bucket = place, shape, bucket
        self.updates_here = shape != "pserver" or place.rank == 0

    def append(
        self, definition: OpDef, inputs: Sequence[str], outputs: Sequence[str], role: str = COMMUNICATION, **settings: object
    ) -> None:
        """Add an operator that the source has not."""
        self.block.ops.append(Operator(definition, inputs, outputs, settings, role))

    def copy(self, op: Operator) -> None:
        """Add an operator of the source."""
        self.block.ops.append(op.copied_into(self.block))

    def begin_with_share(self, seed: Operator) -> None:
        """Begin the backward pass with the share, where it began with 1."""
        gradient = self.block.var(seed.outputs[0])
        whole = self.block.create_var(f"{gradient.name}.whole", gradient.shape, gradient.dtype, stop_gradient=True).name
        self.block.ops.append(Operator(seed.definition, seed.inputs, [whole], seed.attributes, seed.role))
        self.weigh(whole, gradient.name, seed.role)

    def weigh(self, value: str, result: str, role: str = COMMUNICATION) -> None:
        """Multiply a value by the share of the batch, into the variable that it is to go to."""
        self.append(multiply, [value, self.share(self.block.var(value).dtype)], [result], role)

    def weighted(self, names: list[str]) -> list[str]:
        """Multiply values by the share of the batch, where they stand."""
        for name in names:
            self.weigh(name, name)
        return names

    def share(self, dtype: str) -> str:
        """The variable of the share, in the element type of what is multiplied by it."""
        return self.share_in(SHARE, dtype)

    def share_in(self, name: str, dtype: str) -> str:
        """A variable that says it, in an element type."""
        name = name if dtype == "float32" else f"{name}.{dtype}"
        return self.block.create_var(name, (), dtype, persistable=True, stop_gradient=True).name

    def insert(self, definition: OpDef, names: Iterable[str]) -> None:
        """A collective over values; it changes them where they stand."""
        names = list(names)
        changed = names if definition.infer_outputs([self.block.var(n).spec for n in names], {}) else []
        if names:
            self.append(definition, names, changed, bucket=self.bucket)

    def gather(self, names: Iterable[str]) -> None:
        """Add values up over the ranks, wherever the update is made."""
        if self.shape == "pserver":
            self.insert(together.receive_gradients if self.updates_here else together.send_gradients, names)
        else:
            self.insert(together.all_reduce, names)

    def send_back(self, updates: Sequence[Operator], others: Iterable[str]) -> None:
        """From a parameter server to all: what the update has changed that they need, and other values."""
        changed = {n for op in updates for n in op.outputs if self.persists(n)}
        used = {n for op in self.source.ops if op.role != OPTIMIZE for n in op.inputs}
        new = [n for n in self.source.vars if n in changed and (n in used or self._is_parameter(n))]
        self.insert(
            together.send_parameters if self.updates_here else together.receive_parameters,
            dict.fromkeys([*new, *others]),
        )

    def persists(self, name: str) -> bool:
        """Whether a variable keeps its value from batch to batch."""
        return self.block.var(name).persistable

    def _is_parameter(self, name: str) -> bool:
        return isinstance(self.source.vars.get(name), Parameter)


def seed_of(block: Block, loss: str | None) -> Operator | None:
    """The operator with which the backward pass of a loss begins; None where there is no loss."""
    if loss is None:
        return None
    name = block.var(loss).grad_name
    gradients: set[str] = set()
    for op in block.ops:
        if op.role == BACKWARD:
            if op.outputs == (name,) and gradients.isdisjoint(filter(None, op.inputs)):
                return op
            gradients.update(op.outputs)
    raise ProgramError(f"{loss} has no backward pass here to share out: minimize it first, or name another loss")


def of_batch(block: Block, ops: Sequence[Operator], seed: Operator | None) -> tuple[set[str], set[str]]:
    """The variables that depend on what is fed or on the share, and those among them that depend on the share."""
    shared = set() if seed is None else _descendants(ops, seed.outputs)
    return _descendants(ops, [v.name for v in block.vars.values() if v.is_data]) | shared, shared


def _descendants(ops: Sequence[Operator], names: Iterable[str]) -> set[str]:
    """The variables that depend on some others."""
    found = set(names)
    for op in ops:
        if not found.isdisjoint(filter(None, op.inputs)):
            found.update(op.outputs)
    return found


def forget_unused(program: Program) -> Program:
    """Drop the variables that nothing needs any more, such as those of an optimiser that is elsewhere."""
    block = program.global_block()
    used = {n for op in block.ops for n in (*op.inputs, *op.outputs)}
    block.vars = {n: v for n, v in block.vars.items() if n in used or v.is_data}
    program.schedulers = {n: rate for n, rate in program.schedulers.items() if n in used}
    return program


def startup_of(startup: Program, program: Program, here: Sequence[Program], place: Place, bucket: int) -> Program:
    """The startup Program of a rank: it gives what the rank needs its first value, and parameters those of rank 0."""
    result = startup.clone_without_operators()
    block, known = result.global_block(), program.global_block().vars
    needed = {name: v for each in here for name, v in each.global_block().vars.items()}
    gone = known.keys() - needed.keys()
    block.ops = [op.copied_into(block) for op in startup.global_block().ops if not gone.issuperset(op.outputs or [""])]
    block.vars = {n: v for n, v in block.vars.items() if n not in gone}
    for added in (v for v in needed.values() if v.persistable and v.name not in known):
        block.create_var(added.name, added.shape, added.dtype, persistable=True)
        value = {"shape": added.shape, "value": 1.0 if is_share(added.name) else 0.0, "dtype": added.dtype}
        block.ops.append(Operator(fill_constant, [], [added.name], value, COMMUNICATION))
    first = [name for name, v in needed.items() if isinstance(v, Parameter) and name in block.vars]
    if first and place.size > 1:
        block.ops.append(Operator(together.broadcast, first, first, {"bucket": bucket}, COMMUNICATION))
    return result
