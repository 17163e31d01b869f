"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from app.graph.passes.rewrite import is_pure, renamed, with_operators, writes
from app.graph.program import Operator, Program
from app.ops.settings import key_of_settings


def common(program: Program, keep: Collection[str]) -> Program:
    """The Program without operators that repeat an earlier operator on the same values.

    Writes to each variable are counted, because a persistable variable may be changed in place between two reads.
    """
    block = program.global_block()
    operators: list[Operator] = []
    replaced: dict[str, str] = {}
    seen: dict[Hashable, tuple[str, ...]] = {}
    write_counts = writes(block.ops)
    versions = dict.fromkeys(write_counts, 0)
    for op in block.ops:
        op = renamed(op, replaced)
        shareable = is_pure(block, op) and all(write_counts[name] == 1 for name in op.outputs)
        key = _key(op, versions) if shareable else None
        if key in seen and not any(name in keep for name in op.outputs):
            replaced.update(zip(op.outputs, seen[key], strict=True))
            continue
        if shareable:
            seen.setdefault(key, op.outputs)
        for name in op.outputs:
            versions[name] += 1
        operators.append(op)
    return with_operators(program, operators, keep)


def _key(op: Operator, versions: dict[str, int]) -> Hashable:
    inputs = tuple((name, versions.get(name or "", 0)) for name in op.inputs)
    return op.definition, inputs, key_of_settings(op.attributes)
