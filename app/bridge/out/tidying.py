"""Tidies the statements of a translated function: no variables without need, and no long lines."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_WIDTH = 112


def tidied(statements: Sequence[ast.stmt], temporary: set[str], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """Statements without variables that are not used, or used once though the translation made them; no long lines."""
    left = _inlined(statements, temporary)
    tidied: list[ast.stmt] = []
    for s in left:
        if isinstance(s, ast.For):
            s.body = [part for inner in s.body for part in _split(inner, fresh)]
        tidied += _split(s, fresh)
    return tidied


def _inlined(statements: Sequence[ast.stmt], temporary: set[str], in_loop: bool = False) -> list[ast.stmt]:
    left = list(statements)
    for place in range(len(left) - 1, -1, -1):
        s, after = left[place], left[place + 1 :]
        target = s.targets[0] if isinstance(s, ast.Assign) else None
        if isinstance(s, ast.For):
            read = [n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
            s.body = _inlined(s.body, {n for n in temporary if read.count(n) == 1}, True)
        if not isinstance(target, ast.Name):
            continue
        users = [t for t in after for n in _loads(t) if n == target.id]
        if not users and not in_loop:
            del left[place]
        elif len(users) == 1 and target.id in temporary and isinstance(s, ast.Assign):
            at = next(i for i, t in enumerate(left) if t is users[0])
            if _may_move(s.value, left[place + 1 : at], users[0]):
                left[at] = Filling({target.id: s.value}).visit(left[at])
                del left[place]
    return left


def _loads(statement: ast.stmt) -> Iterator[str]:
    yield from (n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def stores(statement: ast.stmt) -> set[str]:
    """The names that a statement assigns."""
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _may_move(value: ast.expr, between: Sequence[ast.stmt], user: ast.stmt) -> bool:
    """Whether an expression may be computed in the statement that uses it."""
    if isinstance(user, ast.For) or len(ast.unparse(value)) + len(ast.unparse(user)) > _WIDTH:
        return False
    read = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    return all(read.isdisjoint(stores(s)) for s in between)


def _split(s: ast.stmt, fresh: Callable[[str], str]) -> list[ast.stmt]:
    """A statement that is too long for a line as several."""
    extracted: list[ast.stmt] = []
    if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Tuple) and isinstance(s.value, ast.Tuple):
        pairs = list(zip(s.targets[0].elts, s.value.elts, strict=True))
        if len(ast.unparse(s)) > _WIDTH and all(isinstance(value, ast.Constant) for _, value in pairs):
            return [ast.Assign([target], value, lineno=0) for target, value in pairs]
    while not isinstance(s, ast.For) and len(ast.unparse(s)) > _WIDTH:
        whole = s.value if isinstance(s, (ast.Assign, ast.Return)) else None
        parts = [n for n in _eager(whole) if n is not whole and isinstance(n, (ast.BinOp, ast.Call, ast.UnaryOp))]
        parts = [n for n in parts if 12 < len(ast.unparse(n)) < _WIDTH - 20]
        if not parts:
            break
        largest = max(parts, key=lambda n: len(ast.unparse(n)))
        name = fresh("part")
        extracted.append(ast.Assign([ast.Name(name, ast.Store())], copy.copy(largest), lineno=0))
        s = _Replacing(largest, ast.Name(name, ast.Load())).visit(s)
    return [*extracted, s]


def _eager(node: ast.AST | None) -> Iterator[ast.AST]:
    """The expressions inside one that are computed whenever it is."""
    if node is not None:
        yield node
        for child in [] if isinstance(node, (ast.IfExp, ast.BoolOp)) else ast.iter_child_nodes(node):
            yield from _eager(child)


class _Replacing(ast.NodeTransformer):
    """Replaces an expression, wherever the same one stands."""

    def __init__(self, old: ast.AST, new: ast.expr):
        self._old, self._new = ast.dump(old), new

    def visit(self, node: ast.AST) -> Any:
        return self._new if isinstance(node, ast.expr) and ast.dump(node) == self._old else self.generic_visit(node)


class Filling(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, values: Mapping[str, ast.expr]):
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self._values[node.id]) if node.id in self._values else node
