"""Makes source from templates: Python text in which names are replaced by parts of the user's source."""

from __future__ import annotations

import ast
from typing import Any


def statements(text: str, at: ast.AST, **parts: Any) -> list[ast.stmt]:
    """Return the statements of a template. A name among `parts` is replaced by an expression, by another name (a str)
    or, alone on its line, by a list of statements. New nodes get the line of `at`, which tracebacks then show.
    """
    template = ast.parse(text)
    for node in ast.walk(template):  # before it is filled, so that nodes of the user's source keep their lines
        if hasattr(node, "lineno"):
            _place(node, at)
    return list(_Filler(parts).visit(template).body)


def expression(text: str, at: ast.AST, **parts: Any) -> ast.expr:
    """Return the expression of a template."""
    (statement,) = statements(text, at, **parts)
    assert isinstance(statement, ast.Expr)
    return statement.value


def name(text: str, at: ast.AST, store: bool = False) -> Any:
    """Return a name, or an attribute of one, as a node."""
    node: Any = ast.parse(text, mode="eval").body
    node.ctx = ast.Store() if store else ast.Load()
    for inner in ast.walk(node):
        if hasattr(inner, "lineno"):
            _place(inner, at)
    return node


def _place(node: Any, at: Any) -> None:
    """Give a node the first line of another. (Python calls a method on the last line of a longer expression.)"""
    ast.copy_location(node, at)
    node.end_lineno, node.end_col_offset = node.lineno, node.col_offset


class _Filler(ast.NodeTransformer):
    def __init__(self, parts: dict[str, Any]):
        self.parts = parts

    def visit_Expr(self, node: ast.Expr) -> Any:
        part = self.parts.get(node.value.id) if isinstance(node.value, ast.Name) else None
        return part if isinstance(part, list) else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        part = self.parts.get(node.id)
        if isinstance(part, str):
            node.id = part
            return node
        return node if part is None else part

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.name = self.parts.get(node.name, node.name)
        return self.generic_visit(node)
