"""A table of what each pass did to a Program."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from app.graph.program import Operator, Program
from app.inspection.memory import Needs, operators_of


@dataclass(frozen=True)
class Row:
    """A pass, with the needs of the Program before and after it."""

    name: str
    before: Needs
    after: Needs
    what: str


def format_rows(rows: Sequence[Row]) -> str:
    """A table of operators, buffers and bytes before and after each pass, and of the operators that changed."""
    columns = [
        ("pass", [row.name for row in rows]),
        ("operators", _pairs([(row.before.operators, row.after.operators) for row in rows])),
        ("buffers", _pairs([(len(row.before.plan.buffers), len(row.after.plan.buffers)) for row in rows])),
        ("bytes", _pairs([(row.before.bytes, row.after.bytes) for row in rows])),
        ("what it did", [row.what for row in rows]),
    ]
    widths = [max(len(title), *map(len, cells)) for title, cells in columns]
    lines = [[title for title, _ in columns], *zip(*(cells for _, cells in columns), strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _pairs(pairs: Sequence[tuple[int, int]]) -> list[str]:
    """Aligned numbers before and after."""
    widths = [max(len(f"{pair[side]:,}") for pair in pairs) for side in (0, 1)]
    return [f"{a:>{widths[0]},} → {b:>{widths[1]},}" for a, b in pairs]


def changed(before: Program, after: Program) -> str:
    """Which operators were removed, added and changed."""
    old, new = (list(operators_of(program.global_block())) for program in (before, after))
    gone, come = Counter(op.type for op in old), Counter(op.type for op in new)
    gone, come = gone - come, come - gone
    if gone and come:
        return f"{_listed(gone)} → {_listed(come)}"
    if gone or come:
        return f"without {_listed(gone)}" if gone else f"with {_listed(come)}"
    operators_before: defaultdict[tuple[str, ...], list[Operator]] = defaultdict(
        list
    )  # more than one where values change in place
    for op in old:
        operators_before[op.outputs].append(op)
    same = {id(op) for op in new if not all(_differs(op, before) for before in operators_before[op.outputs])}
    other = Counter(op.type for op in new if operators_before[op.outputs] and id(op) not in same)
    return f"changed {_listed(other)}" if other else "nothing to do"


def _differs(op: Operator, other: Operator) -> bool:
    return op.definition is not other.definition or op.inputs != other.inputs


def _listed(types: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in types.items())
