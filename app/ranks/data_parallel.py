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
from typing import Literal

from app.errors import ProgramError
from app.graph.program import BACKWARD, OPTIMIZE, Block, Operator, Program
from app.graph.variable import Parameter
from app.ops.arithmetic import multiply
from app.ops.definition import OpDef
from app.ops.dtype import is_float
from app.ranks import operators

COMMUNICATION = "communication"
"""The role of inserted operators."""

WEIGHT = "weight_of_rank"
"""The prefix of the variables that hold the weight of a rank, one for each element type."""

Shape = Literal["allreduce", "pserver"]


def data_parallel(program: Program, rank: int, shape: Shape = "allreduce", *, loss: str) -> Program:
    """The Program of one rank of several. `loss` is what is minimised."""
    source, result = program.global_block(), program.clone_without_operators()
    block, seed = result.global_block(), _seed_of(source, loss)
    updates = [op for op in source.ops if op.role == OPTIMIZE]
    start = source.ops.index(updates[0]) if updates else 0
    before, after = source.ops[:start], source.ops[start + len(updates) :]
    if source.ops != [*before, *updates, *after]:
        raise ProgramError(f"{loss}: only one optimiser's update can be shared between ranks")
    gradients = _gradients(source, before, updates, seed)
    persistent = [n for op in [*before, *after] for n in op.outputs if source.var(n).persistable]
    if statistics := [n for n in persistent if is_float(source.var(n).dtype)]:  # such as the running means of BatchNorm
        raise ProgramError(
            f"each batch updates {', '.join(statistics)}, for which each rank would use its own part of a batch: leave "
            "such statistics out, or train in one process"
        )

    def copy(ops: Iterable[Operator]) -> None:
        for op in ops:
            copied = op.copied_into(block)
            stream = copied.attributes["seed"] if op.definition.random else None
            if stream is not None and rank:  # each rank draws its own random numbers
                copied.attributes["seed"] = (stream[0], stream[1] + (rank << 32))
            block.ops.append(copied)

    def insert(collective: OpDef, values: Iterable[str]) -> None:
        if inputs := list(values):
            changed = inputs if collective.infer_outputs([block.var(n).spec for n in inputs], {}) else []
            block.ops.append(Operator(collective, inputs, changed, {}, COMMUNICATION))

    for op in before:
        if op is seed:
            _begin_with_weight(block, seed)
        else:
            copy([op])
    if shape == "allreduce" and _only_subtracts(block, before, updates):
        copy(updates)
        insert(operators.average, dict.fromkeys(n for op in updates for n in op.outputs))
    elif shape == "allreduce":
        insert(operators.average, gradients)
        copy(updates)
    else:  # the parameters, and what else changed and is read by the forward pass
        changed = {n for op in updates for n in op.outputs if block.var(n).persistable}
        used = {n for op in [*before, *after] for n in op.inputs}
        new = [n for n, v in source.vars.items() if n in changed and (n in used or isinstance(v, Parameter))]
        if rank == 0:
            insert(operators.receive_gradients, gradients)
            copy(updates)
            insert(operators.send_parameters, new)
        else:
            insert(operators.send_gradients, gradients)
            insert(operators.receive_parameters, new)
    copy(after)
    return result


def _gradients(block: Block, before: Sequence[Operator], updates: Sequence[Operator], seed: Operator) -> list[str]:
    """The values of a batch that updates read. All of them must be gradients, which are weighted."""
    weighted = _descendants(before, seed.outputs)
    varying = weighted | _descendants(before, [v.name for v in block.vars.values() if v.is_data])
    names = dict.fromkeys(n for op in updates for n in op.inputs if n in varying)
    read = [n for n in names if not block.var(n).persistable and is_float(block.var(n).dtype)]
    for name in read:
        if name not in weighted:
            raise ProgramError(
                f"an update reads {name}, which is not a gradient: each rank would have its own rows of it"
            )
    return read


def _begin_with_weight(block: Block, seed: Operator) -> None:
    """Begin the backward pass with the weight of the rank instead of 1."""
    gradient = block.var(seed.outputs[0])
    dtype = gradient.dtype
    one = block.create_var(f"{gradient.name}.one", gradient.shape, dtype, stop_gradient=True).name
    weight = block.create_var(f"{WEIGHT}.{dtype}", (), dtype, persistable=True, stop_gradient=True).name
    block.ops.append(Operator(seed.definition, seed.inputs, [one], seed.attributes, seed.role))
    block.ops.append(Operator(multiply, [one, weight], [gradient.name], {}, seed.role))


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
    descendants = set(names)
    for op in ops:
        if not descendants.isdisjoint(filter(None, op.inputs)):
            descendants.update(op.outputs)
    return descendants


def _only_subtracts(block: Block, before: Sequence[Operator], updates: Sequence[Operator]) -> bool:
    """Whether all updates of a Program subtract a multiple of a gradient from a parameter."""
    computed = {name for op in before for name in op.outputs}

    def subtracts(op: Operator) -> bool:
        form = op.definition.accumulates
        if form is None:
            return False
        base, scale, term = (op.inputs[place] for place in form.places(op.definition.inputs))
        is_state = base is not None and block.var(base).persistable and base not in computed
        return is_state and op.outputs == (base,) and scale not in computed and term in computed

    return bool(updates) and all(map(subtracts, updates))
