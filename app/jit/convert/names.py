"""Finds the names that a piece of source assigns and reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

MUTATORS = frozenset({
    "__delitem__", "__setitem__", "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "fill",
    "insert", "pop", "popitem", "popleft", "put", "remove", "reverse", "rotate", "setdefault", "sort", "update",
})  # fmt: skip
"""Methods that modify Python containers and arrays."""

INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements with a scope of their own."""

EXPRESSIONS = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions with a scope of their own."""


class Names(NamedTuple):
    """The variables of a function that a statement uses."""

    assigned: list[str]
    """Those that it assigns."""
    read: list[str]
    """Those that it only reads."""
    outer: list[str]
    """The `global` and `nonlocal` names that it assigns."""


class Assigned:
    """The names that statements assign, in order."""

    def __init__(self, statements: Iterable[ast.AST]):
        self._bound: dict[str, None] = {}
        for statement in statements:
            self._collect(statement)

    @property
    def bound(self) -> list[str]:
        """The names."""
        return list(self._bound)

    def _collect(self, node: ast.AST) -> None:
        if isinstance(node, INNER):
            self._bound[node.name] = None
            return
        if isinstance(node, EXPRESSIONS):
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr):
                    self._bound[inner.target.id] = None
            return
        context = getattr(node, "ctx", None)
        if isinstance(node, ast.Name) and isinstance(context, (ast.Store, ast.Del)):
            self._bound[node.id] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._bound.update(dict.fromkeys((a.asname or a.name).partition(".")[0] for a in node.names))
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            self._bound[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            self._bound[node.rest] = None
        for child in ast.iter_child_nodes(node):
            self._collect(child)


def declared(function: ast.AST, kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """Return the names in the `global` or `nonlocal` statements of a function."""
    return {name for node in within(function) if isinstance(node, kind) for name in node.names}


def suspends(function: ast.AST) -> bool:
    """Return whether a function is a generator or awaits something, so that its parts cannot become functions."""
    return any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)) for node in within(function))


def within(function: ast.AST) -> Iterable[ast.AST]:
    """Yield the nodes of a function, without those of functions and classes inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*INNER, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def contains(nodes: Iterable[ast.AST], kinds: tuple[type, ...]) -> bool:
    """Return whether there is a node of these kinds, outside of inner functions."""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, (*INNER, ast.Lambda)):
            continue
        if contains(ast.iter_child_nodes(node), kinds):
            return True
    return False


def cannot_wait(*nodes: ast.AST) -> bool:
    """Return whether an expression cannot be moved into a lambda, because it assigns names or suspends the function."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(inner, kinds) for node in nodes for inner in ast.walk(node))
