"""Reads functions of whole arrays so that loops can take their place, and nothing else tells the two apart.

What NumPy checks when it runs, and loops do not, is refused: an index by number may lie outside of its array, a slice
ends where the array does, and one size beside another may be 1.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from app.derivative.arrays.complete import CompleteReader
from app.derivative.arrays.core import Expr, Function, Guard
from app.derivative.arrays.values import Array, Index, Number, constant_int
from app.ops.size import Size, names_of
from app.ops.spec import UNKNOWN

_SAMPLES = (2, 3, 7, 64, 101)
"""What open sizes are replaced by, to see which sizes are equal."""


class WholeReader(CompleteReader):
    """Reads one function of whole arrays, whose results are expected to have these Specs."""

    def __init__(self, function: Any, specs: Sequence[Any], results: Sequence[Any]):
        super().__init__(function, specs)
        self._expected = results
        parameters = self.scope.function.__code__.co_varnames
        self._examples = [
            {key: _sampled(spec, n) for key, spec in zip(parameters, specs, strict=False)} for n in _SAMPLES
        ]

    def read(self) -> Function:
        function = super().read()
        shapes = [self.dims.get(name, []) for name in function.outputs]
        for example, n in zip(self._examples, _SAMPLES, strict=True):
            actual = [tuple(self._size(size, example) for size in shape) for shape in shapes]
            if actual != [_sampled(spec, n).shape for spec in self._expected]:
                self.refuse(self.scope.tree, "does not evidently return the declared shapes")
        return function

    def agree(self, left: Expr, right: Expr, node: ast.AST) -> None:
        for example in self._examples:
            sizes = [self._size(size, example) for size in (left, right)]
            if None in sizes or sizes[0] != sizes[1]:
                self.refuse(node, "has sizes of which it is not evident that they are equal")
        super().agree(left, right, node)

    def fixed(self, size: Expr) -> Expr:
        result = super().fixed(size)
        if isinstance(result, ast.Name):
            for example in self._examples:
                example[result.id] = self._size(size, example)
        return result

    def _size(self, size: Expr, example: dict[str, Any]) -> Any:
        """A size, or a test of sizes; None if it is known only when the function runs, or depends on a condition."""
        if any(isinstance(part, ast.IfExp) for part in ast.walk(size)):
            return None
        try:
            return eval(self.canonical(size), {"__builtins__": {}, "max": max, "min": min}, example)
        except Exception:  # of names that are not known
            return None

    def indexed(self, owner: Array, index: Sequence[Index], node: ast.AST, changing: bool = False) -> Number | Array:
        for part, size in zip((p for p in index if p is not None), owner.dims, strict=False):
            place = constant_int(part.expr) if isinstance(part, Number) else None
            sizes = [self._size(size, example) for example in self._examples]
            inside = place is not None and all(s is not None and -s <= place < s for s in sizes)
            if isinstance(part, (Number, Array)) and not inside:
                self.refuse(node, "may have an index outside of its array")
        return super().indexed(owner, index, node, changing)

    def _slice(self, part: ast.Slice, size: Expr, node: ast.AST) -> tuple[Expr, Expr, Expr]:
        before = len(self.out)
        result = super()._slice(part, size, node)
        for statement in self.out[before:]:
            if isinstance(statement, Guard):
                tests = [self._size(statement.test, example) for example in self._examples]
                if not all(test is True for test in tests):
                    self.refuse(node, "is a slice that may end where its array does")
        return result

    def statement(self, node: ast.stmt) -> None:
        if self.names.scope.is_idle(node) and not isinstance(getattr(node, "value", None), ast.Constant):
            self.refuse(node, "prints")
        super().statement(node)

    def branch(self, node: ast.If) -> None:
        for block in (node.body, node.orelse):
            if block and isinstance(block[-1], ast.Raise):
                self.refuse(block[-1], "raises an error")
        super().branch(node)


def _sampled(spec: Any, n: int) -> Any:
    """What sizes are computed from: a value with a shape, or a setting."""
    if not hasattr(spec, "shape"):
        return spec
    shape = [
        size.at(**dict.fromkeys(names_of(size), n)) if isinstance(size, Size) else n if size == UNKNOWN else size
        for size in spec.shape
    ]
    return SimpleNamespace(shape=tuple(shape))
