"""Assignments to items and attributes, recorded so that an attempt can be undone, and shapes with open sizes."""

from __future__ import annotations

import ast
from typing import Any

from app.jit.convert.build import expression
from app.jit.convert.state import State
from app.jit.variable import TracedVariable
from app.tensor.modes import modes

# Rewriting


def rewrite_item(rewriter: Any, node: ast.Subscript) -> ast.expr:
    """`x[i] = v`, `x[i] += v` and `del x[i]` as Python has them, of `_jit.about_to_change(x)`."""
    rewriter.generic_visit(node)
    if not isinstance(node.ctx, ast.Load):
        node.value = expression("_jit.about_to_change(x)", node, x=node.value)
    return node


def rewrite_attribute(rewriter: Any, node: ast.Attribute) -> ast.expr:
    """`x.shape` as `_jit.shape(x)`; `x.name = v` as Python has it, of `_jit.about_to_change(x, 'name')`."""
    rewriter.generic_visit(node)
    if not isinstance(node.ctx, ast.Load):
        attribute = ast.copy_location(ast.Constant(node.attr), node)
        node.value = expression("_jit.about_to_change(x, attribute)", node, x=node.value, attribute=attribute)
    if node.attr != "shape" or not isinstance(node.ctx, ast.Load):
        return node
    return expression("_jit.shape(x)", node, x=node.value)


# Meaning


def about_to_change(owner: Any, attribute: str | None = None) -> Any:
    """The owner of an item or an attribute that is set or deleted; the old value is recorded during an attempt."""
    if modes().tracer is not None:
        if attribute is None:
            modes().tracer.note_contents(owner)
        else:
            modes().tracer.note_attribute_of(owner, attribute)
    return owner


def about_to_rebind(state: State) -> None:
    """A function that gives values to names of others, by `global` or `nonlocal`, is called."""
    if modes().tracer is not None:
        modes().tracer.note_names(state)


def shape(value: Any) -> Any:
    """The shape of a value. The size of a batch that was left open cannot be computed with: it raises."""
    return value.asked_shape if isinstance(value, TracedVariable) else value.shape
