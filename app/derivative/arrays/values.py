"""What the expressions of a function on arrays stand for, and the statements that compute them.

An array is the expression of each of its elements: only one that is read many times, or changed, is stored.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from app.derivative.arrays.core import (
    Alloc,
    Assign,
    Expr,
    For,
    Guard,
    Stmt,
    Store,
    Variable,
    binary,
    call,
    compare,
    element_of,
    is_shape,
    load,
    loads_of,
    names_of,
    replaced,
    same,
    text_of,
)
from app.derivative.scope import Scope
from app.derivative.terms import name, number
from app.functions import unused


@dataclass
class Number:
    """A number, as an expression."""

    expr: Expr
    kind: str


@dataclass
class Array:
    """An array, as the expression of each of its elements."""

    dims: list[Expr]
    element: Callable[[list[Expr]], Expr]
    kind: str
    dtype: Expr | None
    base: str = ""
    """The array that it is a view of; empty for one that is computed."""

    @property
    def rank(self) -> int:
        return len(self.dims)


@dataclass
class Items:
    """A tuple."""

    parts: list[Value]


@dataclass
class Object:
    """A value of Python: a function, a module, a type."""

    value: Any


Value: TypeAlias = Number | Array | Items | Object
Index: TypeAlias = Number | Array | ast.Slice | None

_KINDS = ["bool", "int", "float"]
_LOOPS = "ijklmnpq"


TYPES = (
    "numbers are floats, truth values, int64 or int32: with other integers, which wrap around, NumPy and Numba compute "
    "differently"
)


def kind_of(dtype: np.dtype) -> str | None:
    """The kind of numbers of a type; None for one that is refused (see `TYPES`)."""
    if dtype.kind == "i" and dtype.itemsize < 4:
        return None
    return {"f": "float", "i": "int", "b": "bool"}.get(dtype.kind)


def wider(*kinds: str) -> str:
    return max(kinds, key=_KINDS.index)


class Names:
    """The names of one function: the derived one, or a helper whose statements are put in its place."""

    def __init__(self, scope: Scope):
        self.scope = scope
        self.values: dict[str, Value] = {}
        self.stores: dict[str, int] = {}
        self.assigned: set[str] = set()
        """Names that are assigned other than as the variable of a loop."""
        targets = {id(n) for node in ast.walk(scope.tree) if isinstance(node, ast.For) for n in ast.walk(node.target)}
        for node in ast.walk(scope.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.stores[node.id] = self.stores.get(node.id, 0) + 1
                if id(node) not in targets:
                    self.assigned.add(node.id)


class Builder:
    """The statements and variables of the small language that a function becomes."""

    def __init__(self, function: Any):
        self.scope = Scope(function, [])
        self.names = Names(self.scope)
        self.all_names = set(self.scope.all_names) | {"np", "math"}
        self.out: list[Stmt] = []
        self.variables: dict[str, Variable] = {}
        self.inputs: list[str] = []
        """The parameters that get a gradient if they are floats: arrays, and numbers that are values of the network."""
        self.float_types: dict[str, str] = {}
        """The types of those of the inputs that are arrays of floats."""
        self.settings: list[str] = []
        """The parameters that are numbers, those among the inputs included."""
        self.steady: set[str] = set()
        """Numbers that are assigned once, outside of loops and branches."""
        self.definitions: dict[str, Expr] = {}
        """Those of them that are made of settings and sizes."""
        self.dims: dict[str, list[Expr]] = {}
        self.equal: dict[str, str] = {}
        """Sizes that are guarded to be equal, each with the one that stands for both."""
        self.unnamed: set[str] = set()
        """Arrays that have no name of the user's yet."""
        self.perhaps_same: set[str] = set()
        """Arrays of which NumPy may give a copy, or not, and what it gives: none of them is changed afterwards."""
        self.loops: list[str] = []
        """The variables of the loops around the statement that is read."""
        self.loop_variables: set[str] = set()
        """Those of all loops, which are the variables of nothing else."""
        self.calls: list[Any] = []
        self.call_of_definition: tuple[Names, ast.AST] | None = None
        """While the definition of a function of NumPy is read, the user's call, and the names of the function that it
        is in."""
        self.line = 0
        self.top = self.out
        self.branches = 0
        """How many branches are around the statement that is read."""
        self.block_number = 0
        """The number of the block that is read; 0 is that of the function itself."""
        self._blocks = 0

    @property
    def unchanging(self) -> set[str]:
        """Numbers that keep their value where they are in use."""
        return {*self.settings, *self.steady, *self.loops}

    # Errors and names

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        names, at = self.call_of_definition or (self.names, node)
        names.scope.refuse(at, why)

    def place(self, node: ast.AST) -> str:
        """File and line of a node in the user's source."""
        names, at = self.call_of_definition or (self.names, node)
        return names.scope.place(at)

    def refuse_sum_of_tests(self, op: ast.operator | None, values: Sequence[Value], node: ast.AST) -> None:
        """Of truth values, NumPy's sum is whether any holds, and Numba's is how many do."""
        if isinstance(op, (ast.Add, ast.MatMult)) and {getattr(value, "kind", "") for value in values} == {"bool"}:
            self.refuse(node, "adds truth values, which NumPy and Numba do differently; write np.where(test, 1, 0)")

    def fresh(self, wish: str) -> str:
        text = unused(wish, self.all_names)
        self.all_names.add(text)
        return text

    def loop_name(self) -> str:
        """A name for the variable of a loop that the user did not write; loops that follow each other share it."""
        names = [*_LOOPS, *(f"{c}{n}" for n in range(2, 99) for c in _LOOPS)]
        used = self.scope.all_names | self.variables.keys() - self.loop_variables
        text = next(t for t in names if t not in used and t not in self.loops)
        self.all_names.add(text)
        self.variables[text] = Variable(0, "int")
        self.loop_variables.add(text)
        return text

    def emit(self, statement: Stmt) -> None:
        statement.line = statement.line or self.line
        self.out.append(statement)

    def number_variable(self, wish: str, kind: str) -> str:
        text = self.fresh(wish)
        self.variables[text] = Variable(0, kind)
        return text

    def temporary(self, value: Expr, kind: str, wish: str = "t") -> Expr:
        """A variable that holds a value; the value itself if it is a constant."""
        if isinstance(value, ast.Constant):
            return value
        text = self.number_variable(wish, kind)
        self.emit(Assign(text, value))
        return name(text)

    def plain(self, key: str) -> Array:
        """A whole array of the function."""
        variable = self.variables[key]
        return Array(list(self.dims[key]), lambda index: load(key, index), variable.kind, variable.dtype, key)

    @contextmanager
    def collected(self) -> Iterator[list[Stmt]]:
        """Statements that are emitted inside, instead of being added to the function."""
        outside, number = self.out, self.block_number
        self._blocks += 1
        self.out, self.block_number = [], self._blocks
        try:
            yield self.out
        finally:
            self.out, self.block_number = outside, number

    # Sizes

    def canonical(self, size: Expr) -> str:
        """A text that is the same for sizes that are known to be equal."""
        text = text_of(self.resolved(size))
        while text in self.equal:
            text = self.equal[text]
        return text

    def resolved(self, size: Expr) -> Expr:
        """A size in terms of settings and the sizes of inputs, as far as it is known."""
        for _ in range(8):
            again = self._resolved(replaced(size, self.definitions))
            if again is size:
                break
            size = again
        return size

    def _resolved(self, size: Expr) -> Expr:
        """A size with those of the function's own arrays replaced by the sizes with which they were made."""
        if isinstance(size, ast.Subscript) and is_shape(size.value) and isinstance(size.slice, ast.Constant):
            array, axis = size.value.value.id, size.slice.value  # type: ignore[attr-defined]
            return size if array in self.inputs or not isinstance(axis, int) else self.dims[array][axis]
        if isinstance(size, ast.BinOp):
            left, right = self._resolved(size.left), self._resolved(size.right)
            return size if left is size.left and right is size.right else binary(left, size.op, right)
        return size

    def agree(self, left: Expr, right: Expr, node: ast.AST) -> None:
        """Make sure that two sizes are equal: where this is not evident, it is guarded."""
        one, other = self.canonical(left), self.canonical(right)
        if one == other:
            return None
        message = f"{self.place(node)}: the sizes {ast.unparse(left)} and {ast.unparse(right)} differ"
        guard = Guard(compare(left, ast.Eq(), right), message, self.line)
        steady = names_of(left) | names_of(right) <= {*self.settings, *self.definitions}
        if self.branches or not steady:
            return self.emit(guard)
        self.top.append(guard)
        self.equal[other] = one
        return None

    def guard(self, test: Expr, message: str) -> None:
        self.emit(Guard(test, message))

    def fixed(self, size: Expr) -> Expr:
        """A size that keeps its value."""
        if names_of(size) - self.unchanging or loads_of(size):
            return self.temporary(size, "int", "size")
        return size

    # Storing

    def store(self, target: Expr, value: Number, op: ast.operator | None) -> None:
        element = element_of(target)
        assert element is not None
        array, index = element
        expr = value.expr
        kind = self.variables[array].kind
        if kind != "float" and value.kind == "float":
            expr = call(kind, expr)
        if isinstance(op, (ast.Add, ast.Sub)):
            expr = expr if isinstance(op, ast.Add) else ast.UnaryOp(ast.USub(), expr)
            return self.emit(Store(array, index, expr, add=True))
        return self.emit(Store(array, index, expr if op is None else binary(target, op, expr)))

    def nest(self, dims: Sequence[Expr], body: Callable[[list[Expr]], None]) -> None:
        """Loops over all indices of a shape."""
        if not dims:
            return body([])
        size, *rest = dims
        if is_one(size):
            return self.nest(rest, lambda index: body([number(0), *index]))
        size, variable = self.fixed(size), self.loop_name()
        with self.collected() as inside:
            self.loops.append(variable)
            self.nest(rest, lambda index: body([name(variable), *index]))
            self.loops.pop()
        return self.emit(For(variable, number(0), size, 1, inside))

    def fill(
        self, place: Array, element: Callable[[list[Expr]], Expr], kind: str = "float", op: ast.operator | None = None
    ) -> None:
        self.nest(place.dims, lambda index: self.store(place.element(index), Number(element(index), kind), op))

    def allocate(
        self, wish: str, dims: Sequence[Expr], kind: str, dtype: Expr | None, maker: str, fill: Expr | None = None
    ) -> str:
        """Make an array."""
        text = self.fresh(wish)
        sizes = [self.fixed(size) for size in dims]
        if dtype is None and kind != "float":
            dtype = ast.Attribute(name("np"), "int64" if kind == "int" else "bool_", ast.Load())
        self.variables[text], self.dims[text] = Variable(len(sizes), kind, dtype), sizes
        self.emit(Alloc(text, maker, tuple(sizes), dtype, fill))
        return text

    def materialise(self, value: Array, wish: str) -> str:
        """Make an array that holds a value."""
        text = self.allocate(wish, value.dims, value.kind, value.dtype, "empty")
        self.fill(self.plain(text), value.element, value.kind)
        return text

    def copy_or_view(self, value: Array, node: ast.AST, why: str) -> Array:
        """An array that is a copy of another one, or not, as NumPy and Numba choose."""
        if value.base in {"", *self.inputs, *self.unnamed}:
            return Array(list(value.dims), value.element, value.kind, value.dtype)
        if self.loops:
            self.refuse(node, why)
        text = self.materialise(value, "t")
        self.perhaps_same |= {text, value.base}
        return self.new(text)

    def in_memory(self, value: Array, wish: str = "t") -> Array:
        """An array whose elements can be read more than once."""
        return value if value.base else self.plain(self.materialise(value, wish))

    def is_whole(self, value: Array) -> bool:
        """Whether an array is no view of a part of one, or of one with its elements in another order."""
        dims = self.dims.get(value.base, [])
        if len(dims) != value.rank or not all(map(same, dims, value.dims)):
            return False
        probe: list[Expr] = [name(f"_{axis}") for axis in range(value.rank)]
        return same(value.element(probe), load(value.base, probe))

    def new(self, text: str) -> Array:
        """An array that has no name of the user's yet."""
        self.unnamed.add(text)
        return self.plain(text)


def broadcast(index: Sequence[Expr], dims: Sequence[Expr]) -> list[Expr]:
    """The index into an array of these sizes, those of one included, from an index into the whole."""
    return [number(0) if is_one(size) else each for each, size in zip(index, dims, strict=True)]


def with_axis(value: Array, axis: int) -> Array:
    """An array with one more axis, of size one."""
    dims = [*value.dims[:axis], number(1), *value.dims[axis:]]
    return Array(dims, lambda at: value.element([*at[:axis], *at[axis + 1 :]]), value.kind, value.dtype, value.base)


def constant_int(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_int(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def is_one(size: Expr) -> bool:
    return isinstance(size, ast.Constant) and size.value == 1


def bases_in(value: Value) -> set[str]:
    """The arrays that a tuple holds, or parts of them."""
    if isinstance(value, Items):
        return set[str]().union(*map(bases_in, value.parts))
    return {value.base} if isinstance(value, Array) else set()
