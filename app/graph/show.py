"""Printing of Programs: the variables, and then the operators in order, grouped by role.

The bodies of an operator are printed below it, with their inputs and outputs.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.graph.program import Block, Body, Operator

INDENT = "    "


def format_block(block: Block) -> str:
    """The text of a block."""
    return "\n".join([f"{{ // {_number(block)}", *_contents(block), "}"])


def _number(block: Block) -> str:
    return f"block {block.idx}" + (f", inside block {block.parent_idx}" if block.parent_idx >= 0 else "")


def _contents(block: Block) -> list[str]:
    lines = [f"{INDENT}{variable}" for variable in block.vars.values() if not _is_from_outside(block, variable.name)]
    for role, operators in groupby(block.ops, key=lambda op: op.role):
        lines += [*([""] if lines else []), f"{INDENT}// {role}"]
        for op in operators:
            lines.append(INDENT + format_operator(op))
            for name, body in op.bodies.items():
                lines += [2 * INDENT + line for line in _body(name, body)]
    return [line.rstrip() for line in lines]


def _is_from_outside(block: Block, name: str) -> bool:
    """Whether a variable is an input from the outer block, with the same name, shape and type there."""
    outside = block.program.blocks[block.parent_idx].find_var(name) if block.parent_idx >= 0 else None
    return outside is not None and outside.spec == block.vars[name].spec


def _body(name: str, body: Body) -> list[str]:
    takes = ", ".join(body.inputs)
    gives = ", ".join(body.outputs)
    return [f"{name}({takes}) -> {gives} {{ // {_number(body.block)}", *_contents(body.block), "}"]


def format_operator(op: Operator) -> str:
    """The line of an operator; for a custom one, with the file and line that registered it."""
    where = f"  // {op.definition.where}" if op.definition.where else ""
    text = str(op)
    return (text if len(text) < 400 else text[:397] + "...") + where
