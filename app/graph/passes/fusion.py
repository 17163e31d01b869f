"""Elementwise fusion: a chain of operators over one shape becomes one operator, run in one loop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from app.graph.passes.rewrite import reads, with_operators, writes
from app.graph.program import Block, Operator, Program
from app.ops.definition import OpDef
from app.ops.form import Constant, Elementwise, Fused


@dataclass
class _Group:
    """Operators that will run in one loop, and what may no longer change meanwhile."""

    shape: tuple[int, ...]
    members: list[Operator] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    open: bool = True

    def add(self, op: Operator) -> None:
        self.members.append(op)
        self.reads.update(name for name in op.inputs if name is not None)
        self.writes.update(op.outputs)


def fusion(program: Program, keep: Collection[str]) -> Program:
    """The Program with chains of elementwise operators joined.

    A group stands where its last member stood, so it takes a further member only while nothing outside has read
    what it writes, or changed what it reads.
    """
    block = program.global_block()
    placed: list[Operator | _Group] = []
    groups: list[_Group] = []
    constant = {op.outputs[0] for op in block.ops if isinstance(op.definition.form, Constant)}
    for op in block.ops:
        group = _home(block, op, groups, constant)
        for other in groups:
            if other is not group and (
                other.writes.intersection(n for n in op.inputs if n)
                or (other.reads | other.writes).intersection(op.outputs)
            ):
                other.open = False
        if group is None and isinstance(op.definition.form, Elementwise):
            group = _Group(block.var(op.outputs[0]).shape)
            groups.append(group)
        if group is None:
            placed.append(op)
            continue
        if group in placed:
            placed.remove(group)
        group.add(op)
        placed.append(group)
    result = [item if isinstance(item, Operator) else _joined(program, item, keep) for item in placed]
    return with_operators(program, result, keep)


def _home(block: Block, op: Operator, groups: list[_Group], constant: set[str]) -> _Group | None:
    """The youngest open group that makes an input of this operator over the same shape."""
    if not isinstance(op.definition.form, Elementwise):
        return None
    shape = block.var(op.outputs[0]).shape
    for group in reversed(groups):
        if group.open and group.shape == shape and group.writes.intersection(n for n in op.inputs if n):
            made_later = {
                n for g in groups if g is not group for n in g.writes if groups.index(g) > groups.index(group)
            }
            if not made_later.intersection(n for n in op.inputs if n):
                return group
    return None


def _joined(program: Program, group: _Group, keep: Collection[str]) -> Operator:
    """One operator for a group: its inputs come from outside, its outputs are what the outside reads."""
    if len(group.members) == 1:
        return group.members[0]
    block = program.global_block()
    inside = reads(group.members)
    everywhere = reads(block.ops)
    made = list(writes(group.members))
    outputs = [n for n in made if everywhere[n] > inside[n] or n in keep or block.var(n).persistable]
    inputs: list[str] = []
    defined: set[str] = set()
    for op in group.members:
        inputs += [n for n in op.inputs if n is not None and n not in defined and n not in inputs]
        defined.update(op.outputs)
    body = tuple(group.members)
    specs = tuple(block.var(n).spec for n in outputs)
    definition = OpDef(
        "+".join(op.type for op in body),
        _kernel(body, inputs, outputs),
        lambda *given: specs,
        inputs=[f"x{i}" for i in range(len(inputs))],
        outputs=outputs,
        form=Fused(body, {name: block.var(name).dtype for name in made}),
    )
    return Operator(definition, inputs, outputs, {}, body[-1].role)


def _kernel(body: tuple[Operator, ...], inputs: list[str], outputs: list[str]) -> Any:
    """What a fused operator computes, for engines that run one operator after the other."""

    def run(*arrays: Any) -> Any:
        values = dict(zip(inputs, arrays, strict=True))
        for op in body:
            results = op.definition.kernel(*[values[n] if n else None for n in op.inputs], **op.attributes)
            values.update(zip(op.outputs, results if isinstance(results, tuple) else (results,), strict=True))
        return values[outputs[0]] if len(outputs) == 1 else tuple(values[n] for n in outputs)

    return run
