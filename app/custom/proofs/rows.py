"""Functions on arrays whose loops look at one row at a time, so that the rows can be shared out."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from app.custom.proofs.reading import (
    NUMBERS,
    Known,
    are_names_of,
    body,
    is_one_of,
    meaning,
    new_array,
    parameters,
    parse,
    returned,
)


def works_row_by_row(function: Any) -> bool:
    """Whether a function on arrays of one shape fills new ones like them in loops that look at one row at a time."""
    parsed = parse(function)
    try:
        return parsed is not None and _fills_rows(*parsed)
    except RecursionError:  # nested too deeply to be walked through
        return False


def _fills_rows(tree: ast.FunctionDef, known: Known) -> bool:
    arrays, made = parameters(tree), set[str]()
    *statements, last = body(tree)
    for statement in statements:
        if isinstance(statement, ast.For):
            if not _is_row_loop(statement, arrays | made, known):
                return False
            continue
        new = new_array(statement, arrays | made, known)
        if new is None:
            return False
        made.add(new[0])
    return isinstance(last, ast.Return) and are_names_of(returned(last), made)


def _is_row_loop(loop: ast.For, arrays: set[str], known: Known) -> bool:
    """Whether a loop goes over the rows, or all elements, of arrays and touches nothing but those of its turn."""
    whole = _range_of(loop.iter, arrays)
    if whole is None or not isinstance(loop.target, ast.Name) or loop.target.id in arrays or loop.orelse:
        return False
    return known("range") is range and _Turn(arrays, loop.target.id, whole, known).allows(loop.body, set())


def _range_of(call: ast.AST, arrays: set[str]) -> str | None:
    """What `range` goes over: 'flat' for the size of an array, 'rows' for its first axis."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
        return None
    if len(call.args) != 1 or call.keywords:
        return None
    extent = ast.unparse(call.args[0])
    for name in arrays:
        if extent == f"{name}.size":
            return "flat"
        if extent in (f"{name}.shape[0]", f"len({name})"):
            return "rows"
    return None


class _Turn:
    """One turn of a loop over rows: what it may do. It may not read a name before it wrote it."""

    def __init__(self, arrays: set[str], row: str, whole: str, known: Known):
        self.arrays, self.row, self.whole, self.known = arrays, row, whole, known

    def allows(self, statements: list[ast.stmt], local: set[str]) -> bool:
        """Whether statements keep to the row. `local` holds the names that were surely written, and grows."""
        return all(self._allows(statement, local) for statement in statements)

    def _allows(self, statement: ast.stmt, local: set[str]) -> bool:
        if isinstance(statement, ast.If):
            inside = self.allows(statement.body, set(local)) and self.allows(statement.orelse, set(local))
            return self._reads(statement.test, local) and inside
        if isinstance(statement, ast.For):
            target = statement.target
            if not (isinstance(target, ast.Name) and self._is_free(target.id)) or statement.orelse:
                return False
            return self._reads(statement.iter, local) and self.allows(statement.body, {*local, target.id})
        if isinstance(statement, ast.AugAssign):
            return self._reads(statement.target, local) and self._reads(statement.value, local)
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            return False
        target = statement.targets[0]
        if not self._reads(statement.value, local):
            return False
        if isinstance(target, ast.Name) and self._is_free(target.id):
            local.add(target.id)
            return True
        return isinstance(target, ast.Subscript) and self._is_in_row(target, local)

    def _is_free(self, name: str) -> bool:
        return name not in self.arrays and name != self.row

    def _reads(self, node: ast.AST, local: set[str]) -> bool:
        """Whether an expression is made of elements of the row and of numbers."""
        if isinstance(node, ast.Subscript):
            return self._is_in_row(node, local) or self._is_inner_extent(node)
        if isinstance(node, ast.Name):
            value = self.known(node.id)
            plain = isinstance(value, NUMBERS) or is_one_of(value, (range, abs, min, max, float, int))
            return node.id in local or (self._is_free(node.id) and plain)
        if isinstance(node, ast.Attribute):
            return isinstance(meaning(node, self.known), (*NUMBERS, np.ufunc))
        if isinstance(node, ast.Call):
            return not node.keywords and all(self._reads(part, local) for part in (node.func, *node.args))
        allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop)
        if not isinstance(node, (*allowed, ast.boolop, ast.cmpop, ast.expr_context)):
            return False
        return all(self._reads(child, local) for child in ast.iter_child_nodes(node))

    def _is_in_row(self, node: ast.Subscript, local: set[str]) -> bool:
        """x[i, j], or x.flat[i] in a loop over all elements."""
        if self.whole == "flat":
            value = node.value
            flat = isinstance(value, ast.Attribute) and value.attr == "flat"
            return flat and self._is_array(value.value) and self._is_row(node.slice)  # type: ignore[attr-defined]
        first, *others = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self._is_array(node.value) and self._is_row(first) and all(self._reads(part, local) for part in others)

    def _is_inner_extent(self, node: ast.Subscript) -> bool:
        """x.shape[1], which is the same for a part of the rows."""
        value, place = node.value, node.slice
        shape = isinstance(value, ast.Attribute) and value.attr == "shape" and self._is_array(value.value)
        return shape and isinstance(place, ast.Constant) and isinstance(place.value, int) and place.value > 0

    def _is_array(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self.arrays

    def _is_row(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.row
