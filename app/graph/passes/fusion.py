"""Elementwise fusion: chains of elementwise operators on one shape become one operator, which runs in one loop."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field

from app.graph.interpret import RunValue, run_operators
from app.graph.passes.rewrite import reads, with_operators, writes
from app.graph.program import Operator, Program
from app.ops.definition import OpDef
from app.ops.lowering import Elementwise, Fused
from app.ops.values import Kernel, Results


@dataclass(eq=False)
class _Group:
    """Operators that will run in one loop. It is open until an operator outside depends on its position."""

    number: int
    shape: Hashable
    members: list[Operator] = field(default_factory=list)
    open: bool = True


def fusion(
    program: Program,
    keep: Collection[str],
    joins: Callable[[Operator], bool] = lambda op: True,
    shape_of: Callable[[str], Hashable] | None = None,
) -> Program:
    """The Program with chains of elementwise operators fused; `joins` selects the operators that may be fused.

    `shape_of` returns the shape of a variable if more is known than its declaration, in which two unknown sizes may
    differ.

    A group is placed at the position of its last member, so it takes another member only while no operator outside has
    read its outputs or overwritten its inputs.
    """
    block = program.global_block()
    placed: dict[int, Operator | _Group] = {}
    makers: dict[str, _Group] = {}
    touching: defaultdict[str, list[_Group]] = defaultdict(list)
    for number, op in enumerate(block.ops):
        makers_of_inputs = [makers[name] for name in op.inputs if name in makers]
        group = None
        if isinstance(op.definition.lowering, Elementwise) and joins(op):
            shape = shape_of(op.outputs[0]) if shape_of else block.var(op.outputs[0]).shape
            fitting = [g for g in makers_of_inputs if g.open and g.shape == shape]
            group = max(fitting, key=lambda g: g.number, default=None) or _Group(number, shape)
        for other in (*makers_of_inputs, *(g for name in op.outputs for g in touching.pop(name, ()))):
            other.open = other is group
        for name in op.outputs:
            makers.pop(name, None)
        if group is None:
            placed[number] = op
            continue
        group.members.append(op)
        placed.pop(group.number, None)
        placed[group.number] = group
        for name in op.outputs:
            makers[name] = group
        for name in filter(None, (*op.inputs, *op.outputs)):
            touching[name].append(group)
    everywhere = reads(block.ops)
    result = [
        item if isinstance(item, Operator) else _joined(program, item, everywhere, keep) for item in placed.values()
    ]
    return with_operators(program, result, keep)


def _joined(program: Program, group: _Group, everywhere: Counter[str], keep: Collection[str]) -> Operator:
    """The fused operator of a group: its inputs come from outside, and its outputs are read outside."""
    if len(group.members) == 1:
        return group.members[0]
    block = program.global_block()
    inside = reads(group.members)
    written = list(writes(group.members))
    outputs = [n for n in written if everywhere[n] > inside[n] or n in keep or block.var(n).persistable]
    inputs: dict[str, None] = {}
    defined: set[str] = set()
    for op in group.members:
        inputs.update(dict.fromkeys(n for n in op.inputs if n is not None and n not in defined))
        defined.update(op.outputs)
    body = tuple(group.members)
    specs = tuple(block.var(n).spec for n in outputs)
    definition = OpDef(
        "+".join(op.type for op in body),
        _kernel(body, list(inputs), outputs),
        lambda *_: specs,
        inputs=[f"x{i}" for i in range(len(inputs))],
        outputs=outputs,
        lowering=Fused(body, {name: block.var(name).dtype for name in written}),
    )
    return Operator(definition, list(inputs), outputs, {}, body[-1].role)


def _kernel(body: tuple[Operator, ...], inputs: Sequence[str], outputs: Sequence[str]) -> Kernel:
    """The kernel of a fused operator, for engines that run operators one by one."""

    def run(*arrays: RunValue) -> Results:
        values = dict(zip(inputs, arrays, strict=True))
        run_operators(body, values)
        return values[outputs[0]] if len(outputs) == 1 else tuple(values[n] for n in outputs)

    return run
