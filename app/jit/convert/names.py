"""Which names a piece of source gives values to, and which it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable

MUTATORS = ("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add")
"""Methods of Python's containers that change them."""

INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements with a scope of their own."""

EXPRESSIONS = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions with a scope of their own."""


def assigned(statements: Iterable[ast.AST]) -> list[str]:
    """What the statements give values to, in order: names, and attributes of names such as `self.count`.

    A container that is changed counts, too. Names that begin with an underscore and a digit are of this package.
    """
    found: dict[str, None] = {}
    for statement in statements:
        _collect(statement, found)
    return list(found)


def _collect(node: ast.AST, found: dict[str, None]) -> None:
    if isinstance(node, INNER):
        found[node.name] = None
        return
    if isinstance(node, EXPRESSIONS):
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                _target(inner.target, found)
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        found[node.id] = None
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        _target(node, found)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        _target(node.value, found)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        _target(node.func.value, found)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        found.update(dict.fromkeys((a.asname or a.name).partition(".")[0] for a in node.names))
    elif isinstance(node, ast.ExceptHandler) and node.name:
        found[node.name] = None
    for child in ast.iter_child_nodes(node):
        _collect(child, found)


def _target(node: ast.AST, found: dict[str, None]) -> None:
    if isinstance(node, ast.Name):
        found[node.id] = None
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        found[f"{node.value.id}.{node.attr}"] = None


def declared(function: ast.AST, kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """The names that a function's own `global` or `nonlocal` statements list."""
    return {name for node in within(function) if isinstance(node, kind) for name in node.names}


def within(function: ast.AST) -> Iterable[ast.AST]:
    """What stands in a function, but not in functions and classes inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*INNER, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def contains(nodes: Iterable[ast.AST], kinds: tuple[type, ...], stop: tuple[type, ...] = ()) -> bool:
    """Whether a statement of one of the kinds stands here, outside of inner functions and of what `stop` lists."""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, (*INNER, ast.Lambda, *stop)):
            continue
        if contains(ast.iter_child_nodes(node), kinds, stop):
            return True
    return False
