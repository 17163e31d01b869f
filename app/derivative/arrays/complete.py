"""Reads functions that are translated to loops or to C, where nothing may be left to the forward pass."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.derivative.arrays.core import Expr, compare, text_of
from app.derivative.arrays.indexing import is_evident
from app.derivative.arrays.reader import Reader
from app.derivative.arrays.values import Array, Index, Number, Object, Value, constant_int
from app.derivative.terms import number


class CompleteReader(Reader):
    """Reads a function that is written out for itself, and not to derive it.

    Errors are raised, and NaN is the largest and the smallest number, as in NumPy: a gradient may leave both to the
    forward pass. What cannot be written out is refused.
    """

    def __init__(self, function: Any, specs: Sequence[Any]):
        super().__init__(function, specs)
        self._inside: set[tuple[int, str]] = set()
        """The tests of constant indices, and the block of each."""

    def indexed(self, owner: Array, index: Sequence[Index], node: ast.AST, changing: bool = False) -> Number | Array:
        for part, size in zip((p for p in index if p is not None), owner.dims, strict=False):
            place = constant_int(part.expr) if isinstance(part, Number) else None
            needed = 0 if place is None else place + 1 if place >= 0 else -place
            if needed > 1:
                test = compare(number(needed), ast.LtE(), size)
                key = self.block_number, text_of(test)
                if not is_evident(test) and key not in self._inside:
                    self._inside.add(key)
                    self.guard(test, f"{self.place(node)}: an index lies outside of its array")
        return super().indexed(owner, index, node, changing)

    def type_in(self, value: Value, node: ast.AST) -> tuple[Expr | None, str]:
        type_of, kind = super().type_in(value, node)
        if kind == "float" and isinstance(value, Object) and not isinstance(value.value, ast.expr):
            dtype = np.dtype(value.value)
            widest = max(map(np.dtype, self.float_types.values()), default=np.dtype(float))
            if dtype.itemsize < widest.itemsize:
                self.refuse(node, f"rounds to {dtype}, which loops do not; write x.dtype, or no type")
        return type_of, kind

    def exceeds(self, element: Expr, op: ast.cmpop, best: Expr, kind: str) -> Expr:
        test = super().exceeds(element, op, best, kind)
        return ast.BoolOp(ast.Or(), [test, compare(element, ast.NotEq(), element)]) if kind == "float" else test

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assert):
            self.refuse(node, 'cannot be written out; write `if ...: raise ValueError("...")`')
        super().statement(node)

    def branch(self, node: ast.If) -> None:
        for block in (node.body, node.orelse):
            if block and isinstance(block[-1], ast.Raise):
                error = block[-1].exc
                args = error.args if isinstance(error, ast.Call) else []
                plain = isinstance(error, ast.Call) and self.names.scope.meaning(error.func) is ValueError
                if not plain or block is node.orelse or not all(isinstance(a, ast.Constant) for a in args):
                    self.refuse(block[-1], 'cannot be written out; write `if ...: raise ValueError("...")`')
        super().branch(node)
