"""Reads indices: elements of arrays, sections with slices, and what arrays of integers choose."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from app.derivative.arrays.arrangements import Arrangements
from app.derivative.arrays.core import Expr, binary, call, compare, loads_of, minus, names_of, plus
from app.derivative.arrays.values import Array, Index, Items, Number, Object, Value, constant_int, is_one
from app.derivative.terms import number


class Indexing(Arrangements):
    """Reads what is indexed."""

    def value(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def number(self, node: ast.expr) -> Number:
        value = self.value(node)
        if not isinstance(value, Number):
            self.refuse(node, "is expected to be a number")
        return value

    def integer(self, node: ast.expr) -> Expr:
        value = self.number(node)
        if value.kind == "float":
            self.refuse(node, "is expected to be an integer; write int(...)")
        return value.expr

    def array(self, node: ast.expr) -> Array:
        value = self.value(node)
        if not isinstance(value, Array):
            self.refuse(node, "is expected to be an array")
        return value

    def index(self, node: ast.Subscript, rank: int) -> list[Index]:
        """The index of an array with so many axes; an ellipsis stands for whole axes."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index: list[Index] = []
        ellipsis: int | None = None
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is ...:
                ellipsis = len(index)
            else:
                index.append(self._index_part(part))
        if ellipsis is not None:
            index[ellipsis:ellipsis] = [ast.Slice()] * (rank - sum(part is not None for part in index))
        return index

    def _index_part(self, part: ast.expr) -> Index:
        return part if isinstance(part, ast.Slice) else self.index_in(self.value(part), part)

    def index_in(self, value: Value, node: ast.AST) -> Number | Array | None:
        """An index that is no slice."""
        if isinstance(value, Object) and value.value is None:
            return None
        if isinstance(value, Items):
            value = self._listed(value, node)
        if isinstance(value, Array) and value.kind == "int" and value.rank == 1:
            return value
        if isinstance(value, Array) and value.kind == "bool":
            self.refuse(node, "is a mask, which takes a number of elements that depends on them; write np.where")
        if not isinstance(value, Number) or value.kind != "int":
            self.refuse(node, "is no integer, slice, or array of integers of one dimension; write a loop")
        return value

    def indexed(self, owner: Array, index: Sequence[Index], node: ast.AST, changing: bool = False) -> Number | Array:
        """An element or a section of an array."""
        dims: list[Expr] = []
        axes: list[Callable[[list[Expr]], Expr]] = []
        """For each axis of the array, the index from the indices of the section."""
        if sum(part is not None for part in index) > owner.rank:
            self.refuse(node, f"has more indices than dimensions, which are {owner.rank}")
        base = owner.base
        self._refuse_slice_between(index, node)
        gathered: int | None = None
        """The axis of the section along which arrays of indices, together, choose elements."""
        single = len(index) == owner.rank and all(isinstance(part, Number) for part in index)
        for part in [*index, *[ast.Slice()] * (owner.rank - sum(part is not None for part in index))]:
            axis, at = len(axes), len(dims)
            if part is None:
                dims.append(number(1))
            elif isinstance(part, Number):
                axes.append(self._one_index(part.expr if single else self._unchanging(part.expr), owner.dims[axis]))
            elif isinstance(part, Array):
                if changing:  # NumPy does so once for an index that is there several times
                    self.refuse(node, "changes elements by an array of indices; write a loop")
                base = ""
                if gathered is None:
                    gathered = at
                    dims.append(part.dims[0])
                else:
                    self.agree(dims[gathered], part.dims[0], node)
                axes.append(_gathered(part, gathered))
            else:
                size, start, step = self._slice(part, owner.dims[axis], node)
                dims.append(size)
                axes.append(_moved(start, step, at))
        if not dims:
            return Number(owner.element([each([]) for each in axes]), owner.kind)
        return Array(dims, lambda at: owner.element([each(at) for each in axes]), owner.kind, owner.dtype, base)

    def _refuse_slice_between(self, index: Sequence[Index], node: ast.AST) -> None:
        """Refuse arrays of indices, and integers beside them, around a slice, if NumPy puts another axis first."""
        places = [place for place, part in enumerate(index) if isinstance(part, (Number, Array))]
        has_array = any(isinstance(part, Array) for part in index)
        if has_array and places[-1] - places[0] >= len(places) and not isinstance(index[0], Array):
            self.refuse(node, "has a slice between an array of indices and another index; index one after the other")

    def _one_index(self, index: Expr, size: Expr) -> Callable[[list[Expr]], Expr]:
        constant = constant_int(index)
        expr = index if constant is None or constant >= 0 else plus(size, constant)
        return lambda _: expr

    def _slice(self, part: ast.Slice, size: Expr, node: ast.AST) -> tuple[Expr, Expr, Expr]:
        """The number of elements of a slice, where it begins, and its step, which is positive or -1."""
        step = number(1) if part.step is None else self._unchanging(self.integer(part.step))
        by = constant_int(step)
        if by == -1 and part.lower is None and part.upper is None:
            return size, minus(size, 1), step
        if by is None:
            self.guard(
                compare(number(0), ast.Lt(), step), f"{self.place(node)}: a slice has a step that is not positive"
            )
        elif by < 1:
            self.refuse(node, "slices with a negative step; write a loop")
        if part.lower is None and part.upper is None:
            return _steps(size, step), number(0), step
        ends = []
        for bound, default in ((part.lower, number(0)), (part.upper, size)):
            expr = default if bound is None else self.integer(bound)
            constant = constant_int(expr)
            if constant is not None and constant < 0:
                expr = plus(size, constant)
            elif constant is None and isinstance(bound, ast.UnaryOp) and isinstance(bound.op, ast.USub):
                from_end = self._unchanging(self.integer(bound.operand))
                message = f"{self.place(node)}: a slice counts from the end by a number that is not positive"
                self.guard(compare(number(0), ast.Lt(), from_end), message)
                expr = minus(size, from_end)
            ends.append(expr if bound is None else self._unchanging(expr))
        start, stop = ends
        if by != 1 and part.upper is not None:  # the last step often goes beyond the end
            stop = self._unchanging(call("min", stop, size))
        tests: list[Expr | None] = [
            compare(number(0), ast.LtE(), start) if part.lower is not None else None,
            compare(start, ast.LtE(), stop),
            compare(stop, ast.LtE(), size) if part.upper is not None and by == 1 else None,
        ]
        for test in tests:
            if test is not None and not is_evident(test):
                self.guard(test, f"{self.place(node)}: a slice lies outside of its array")
        return _steps(minus(stop, start), step), start, step

    def _unchanging(self, expr: Expr) -> Expr:
        """An index that keeps its value as long as the view that it belongs to."""
        if names_of(expr) - self.unchanging or loads_of(expr):
            return self.temporary(expr, "int", "at")
        return expr


def _gathered(part: Array, at: int) -> Callable[[list[Expr]], Expr]:
    return lambda index: part.element([index[at]])


def _moved(start: Expr, step: Expr, at: int) -> Callable[[list[Expr]], Expr]:
    if constant_int(step) == -1:
        return lambda index: minus(start, index[at])
    return lambda index: plus(start, index[at] if is_one(step) else binary(index[at], ast.Mult(), step))


def _steps(length: Expr, step: Expr) -> Expr:
    """The number of elements of a slice with a step."""
    return length if is_one(step) else binary(plus(length, minus(step, 1)), ast.FloorDiv(), step)


def is_evident(test: Expr) -> bool:
    """Whether a comparison of slice bounds holds for constants."""
    if not isinstance(test, ast.Compare):
        return False
    left, right = constant_int(test.left), constant_int(test.comparators[0])
    return left is not None and right is not None and left <= right
