"""How a Program prints itself: variables first, then the operators in order, under the part that they belong to."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.graph.program import Block, Operator


def format_block(block: Block) -> str:
    """The text of a block; a reader sees there what each line of a network's source inserted."""
    around = f", inside block {block.parent_idx}" if block.parent_idx >= 0 else ""
    lines = [f"{{ // block {block.idx}{around}"]
    lines += [f"    {variable}" for variable in block.vars.values()]
    for role, operators in groupby(block.ops, key=lambda op: op.role):
        lines += ["", f"    // {role}"]
        lines += [f"    {_line(op)}" for op in operators]
    return "\n".join([*lines, "}"])


def _line(op: Operator) -> str:
    where = f"  // {op.definition.where}" if op.definition.where else ""
    text = str(op)
    return (text if len(text) < 400 else text[:397] + "...") + where
