"""Reads expressions: numbers, and arrays as the expressions of their elements."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from app.custom.derivative.arrays.core import (
    Alloc,
    Assign,
    Copied,
    Expr,
    For,
    Guard,
    If,
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
    minus,
    names_of,
    plus,
    replaced,
    same,
    text_of,
    transposed,
)
from app.custom.derivative.scope import Scope
from app.custom.derivative.slopes import hashable, is_flat, row_of
from app.custom.derivative.terms import name, number
from app.custom.numba_functions import function_name, python_function, unused


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
_ROUNDED = {"floor", "ceil", "trunc", "round", "int", "rint"}


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


class Values:
    """What is known while a function is read, and how its expressions are read."""

    def __init__(self, function: Any):
        self.scope = Scope(function, [])
        self.names = Names(self.scope)
        self.taken = set(self.scope.taken) | {"np", "math"}
        self.out: list[Stmt] = []
        self.variables: dict[str, Variable] = {}
        self.inputs: list[str] = []
        self.settings: list[str] = []
        self.steady: set[str] = set()
        """Numbers that are assigned once, outside of loops and branches."""
        self.definitions: dict[str, Expr] = {}
        """Those of them that are made of settings and sizes."""
        self.dims: dict[str, list[Expr]] = {}
        self.equal: dict[str, str] = {}
        self.loops: list[str] = []
        """The variables of the loops around the statement that is read."""
        self.loop_variables: set[str] = set()
        """Those of all loops, which are the variables of nothing else."""
        self.calls: list[Any] = []
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
        self.names.scope.refuse(node, why)

    def fresh(self, wish: str) -> str:
        text = unused(wish, self.taken)
        self.taken.add(text)
        return text

    def loop_name(self) -> str:
        """A name for the variable of a loop that the user did not write; loops that follow each other share it."""
        names = [*_LOOPS, *(f"{c}{n}" for n in range(2, 99) for c in _LOOPS)]
        used = self.scope.taken | self.variables.keys() - self.loop_variables
        text = next(t for t in names if t not in used and t not in self.loops)
        self.taken.add(text)
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
        for _ in range(8):
            again = self._resolved(replaced(size, self.definitions))
            if again is size:
                break
            size = again
        text = text_of(size)
        while text in self.equal:
            text = self.equal[text]
        return text

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
        guard = Guard(compare(left, ast.Eq(), right), f"{self.names.scope.place(node)}: these sizes differ", self.line)
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
        if self.variables[array].kind != "float" and value.kind == "float":
            expr = call("int", expr)
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

    def made(self, wish: str, dims: Sequence[Expr], kind: str, dtype: Expr | None, how: str, fill: Expr | None) -> str:
        """Make an array."""
        text = self.fresh(wish)
        sizes = [self.fixed(size) for size in dims]
        if dtype is None and kind != "float":
            dtype = ast.Attribute(name("np"), "int64" if kind == "int" else "bool_", ast.Load())
        self.variables[text], self.dims[text] = Variable(len(sizes), kind, dtype), sizes
        self.emit(Alloc(text, how, tuple(sizes), dtype, fill))
        return text

    def stored(self, value: Array, wish: str) -> str:
        """Make an array that holds a value."""
        text = self.made(wish, value.dims, value.kind, value.dtype, "empty", None)
        self.fill(self.plain(text), value.element, value.kind)
        return text

    def held(self, value: Array, wish: str = "t") -> Array:
        """An array whose elements can be read more than once."""
        return value if value.base else self.plain(self.stored(value, wish))

    # Expressions

    def value(self, node: ast.expr) -> Value:
        """What an expression is."""
        reading: dict[type[ast.expr], Callable[[Any], Value]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.BinOp: lambda n: self.arithmetic(n.op, self.value(n.left), self.value(n.right), n),
            ast.UnaryOp: self._unary,
            ast.BoolOp: self._boolean,
            ast.Compare: self._comparison,
            ast.IfExp: self._choice,
            ast.Call: self._call,
            ast.Tuple: lambda n: Items([self.value(part) for part in n.elts]),
            ast.List: lambda n: Items([self.value(part) for part in n.elts]),
        }
        if type(node) not in reading:
            self.refuse(node, "is an expression that cannot be derived; write a loop")
        return reading[type(node)](node)

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

    def _constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, bool):
            return Number(node, "bool")
        if isinstance(node.value, (int, float)):
            return Number(node, "int" if isinstance(node.value, int) else "float")
        return Object(node.value)

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.names.values:
            return self.names.values[node.id]
        if node.id in self.names.scope.local:
            self.refuse(
                node, "has no value here: it is assigned in a branch or a loop, or is the variable of a loop before"
            )
        return self._global(self.names.scope.meaning(node), node)

    def _global(self, value: Any, node: ast.expr) -> Value:
        if isinstance(value, (bool, int, float, np.number, np.bool_)):
            plain = value.item() if isinstance(value, np.generic) else value
            if isinstance(plain, float) and not math.isfinite(plain):
                text = "nan" if plain != plain else "inf"
                constant: Expr = ast.Attribute(name("np"), text, ast.Load())
                return Number(ast.UnaryOp(ast.USub(), constant) if plain < 0 else constant, "float")
            return Number(number(plain), "bool" if isinstance(plain, bool) else type(plain).__name__)
        if isinstance(value, np.ndarray):
            self.refuse(node, "is an array outside of the function; make it a parameter")
        return Object(value)

    def _attribute(self, node: ast.Attribute) -> Value:
        meaning = self.names.scope.meaning(node)
        if meaning is not None:
            return self._global(meaning, node)
        owner = self.value(node.value)
        if isinstance(owner, Array):
            if node.attr == "shape":
                return Items([Number(size, "int") for size in owner.dims])
            if node.attr == "size":
                sizes = [size for size in owner.dims if not is_one(size)] or [number(1)]
                result = sizes[0]
                for size in sizes[1:]:
                    result = binary(result, ast.Mult(), size)
                return Number(result, "int")
            if node.attr == "ndim":
                return Number(number(owner.rank), "int")
            if node.attr == "dtype":
                return Object(owner.dtype)
            if node.attr == "T":
                return Array(
                    owner.dims[::-1], lambda index: owner.element(index[::-1]), owner.kind, owner.dtype, owner.base
                )
        return self.refuse(node, "is unknown")

    def _subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, Items):
            return self._item(owner, node)
        if not isinstance(owner, Array):
            self.refuse(node, "indexes something that is no array")
        return self.indexed(owner, self.index(node), node)

    def _item(self, owner: Items, node: ast.Subscript) -> Value:
        parts = node.slice
        if isinstance(parts, ast.Slice):
            bounds = [None if b is None else constant_int(b) for b in (parts.lower, parts.upper, parts.step)]
            return Items(owner.parts[slice(*bounds)])
        position = constant_int(parts)
        if position is None or not -len(owner.parts) <= position < len(owner.parts):
            self.refuse(node, "indexes a tuple with something other than a constant")
        return owner.parts[position]

    def index(self, node: ast.Subscript) -> list[Index]:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return [self._index_part(part) for part in parts]

    def _index_part(self, part: ast.expr) -> Index:
        if isinstance(part, ast.Slice):
            return part
        value = self.value(part)
        if isinstance(value, Object) and value.value is None:
            return None
        if isinstance(value, Array) and value.kind == "int" and value.rank == 1:
            return value
        if not isinstance(value, Number) or value.kind != "int":
            self.refuse(part, "is no integer, slice, or array of integers of one dimension; write a loop")
        return value

    def indexed(self, owner: Array, index: Sequence[Index], node: ast.AST, writing: bool = False) -> Number | Array:
        """An element or a section of an array."""
        dims: list[Expr] = []
        axes: list[Callable[[list[Expr]], Expr]] = []
        """For each axis of the array, the index from the indices of the section."""
        if sum(part is not None for part in index) > owner.rank:
            self.refuse(node, f"has more indices than dimensions, which are {owner.rank}")
        base = owner.base
        single = len(index) == owner.rank and all(isinstance(part, Number) for part in index)
        for part in [*index, *[ast.Slice()] * (owner.rank - sum(part is not None for part in index))]:
            axis, at = len(axes), len(dims)
            if part is None:
                dims.append(number(1))
            elif isinstance(part, Number):
                axes.append(self._one_index(part.expr if single else self._unchanging(part.expr), owner.dims[axis]))
            elif isinstance(part, Array):
                if writing:
                    self.refuse(node, "writes by an array of indices; write a loop")
                base = ""
                dims.append(part.dims[0])
                axes.append(_gathered(part, at))
            else:
                size, start, step = self._slice(part, owner.dims[axis], node)
                dims.append(size)
                axes.append(_moved(start, step, at))
        if not dims:
            return Number(owner.element([each([]) for each in axes]), owner.kind)
        return Array(dims, lambda at: owner.element([each(at) for each in axes]), owner.kind, owner.dtype, base)

    def _one_index(self, index: Expr, size: Expr) -> Callable[[list[Expr]], Expr]:
        constant = constant_int(index)
        expr = index if constant is None or constant >= 0 else plus(size, constant)
        return lambda _: expr

    def _slice(self, part: ast.Slice, size: Expr, node: ast.AST) -> tuple[Expr, Expr, int]:
        """The number of elements of a slice, where it begins, and its step, 1 or -1."""
        step = 1 if part.step is None else constant_int(part.step)
        if step == -1 and part.lower is None and part.upper is None:
            return size, minus(size, 1), -1
        if step != 1:
            self.refuse(node, "slices with a step; write a loop")
        if part.lower is None and part.upper is None:
            return size, number(0), 1
        ends = []
        for bound, default in ((part.lower, number(0)), (part.upper, size)):
            expr = default if bound is None else self.integer(bound)
            constant = constant_int(expr)
            expr = plus(size, constant) if constant is not None and constant < 0 else expr
            ends.append(expr if bound is None else self._unchanging(expr))
        start, stop = ends
        tests: list[Expr | None] = [
            compare(number(0), ast.LtE(), start) if part.lower is not None else None,
            compare(start, ast.LtE(), stop),
            compare(stop, ast.LtE(), size) if part.upper is not None else None,
        ]
        for test in tests:
            if test is not None and not _is_evident(test):
                self.guard(test, f"{self.names.scope.place(node)}: a slice lies outside of its array")
        return minus(stop, start), start, 1

    def _unchanging(self, expr: Expr) -> Expr:
        """An index that keeps its value as long as the view that it belongs to."""
        if names_of(expr) - self.unchanging or loads_of(expr):
            return self.temporary(expr, "int", "at")
        return expr

    # Arithmetic

    def arithmetic(self, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
        if isinstance(op, ast.MatMult):
            return self.product(left, right, node)
        if isinstance(op, (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)):
            self.refuse(node, "works on bits, and cannot be derived")
        if isinstance(left, Items) and isinstance(right, Items) and isinstance(op, ast.Add):
            return Items([*left.parts, *right.parts])

        def kind(a: str, b: str) -> str:
            return "float" if isinstance(op, (ast.Div, ast.Pow)) else wider("int", a, b)

        return self.elementwise(lambda a, b: binary(a, op, b), [left, right], kind, node)

    def elementwise(
        self, build: Callable[..., Expr], values: Sequence[Value], kind: Callable[..., str], node: ast.AST
    ) -> Number | Array:
        """A function of numbers, applied to numbers and to the elements of arrays."""
        parts: list[Number | Array] = []
        for value in values:
            if not isinstance(value, (Number, Array)):
                self.refuse(node, "computes with something other than numbers and arrays")
            parts.append(value)
        result = kind(*(part.kind for part in parts))
        arrays = [part for part in parts if isinstance(part, Array)]
        if not arrays:
            return Number(build(*(part.expr for part in parts if isinstance(part, Number))), result)
        dims = self.broadcast([each.dims for each in arrays], node)
        held = [part if isinstance(part, Array) else self._repeated(part) for part in parts]

        def element(index: list[Expr]) -> Expr:
            return build(
                *(
                    p.expr if isinstance(p, Number) else p.element(broadcast(index[len(dims) - p.rank :], p.dims))
                    for p in held
                )
            )

        dtypes = [a.dtype for a in arrays if a.kind == "float"]
        dtype = dtypes[0] if dtypes and result == "float" else None
        return Array(dims, element, result, dtype)

    def _repeated(self, part: Number) -> Number:
        """A number that is computed before a loop in which it is used."""
        if isinstance(part.expr, (ast.Constant, ast.Name)) or (not names_of(part.expr) and not loads_of(part.expr)):
            return part
        return Number(self.temporary(part.expr, part.kind), part.kind)

    def broadcast(self, shapes: Sequence[list[Expr]], node: ast.AST) -> list[Expr]:
        """The shape of an expression of arrays. Sizes have to be equal, unless one is written as 1 or None."""
        rank = max(len(dims) for dims in shapes)
        result: list[Expr] = []
        for axis in range(rank):
            sizes = [dims[axis - rank + len(dims)] for dims in shapes if axis - rank + len(dims) >= 0]
            wide = [size for size in sizes if not is_one(size)]
            for size in wide[1:]:
                self.agree(wide[0], size, node)
            result.append(wide[0] if wide else number(1))
        return result

    def _unary(self, node: ast.UnaryOp) -> Value:
        operand = self.value(node.operand)
        if isinstance(node.op, ast.Invert):
            self.refuse(node, "works on bits, and cannot be derived")
        if isinstance(operand, Number) and isinstance(node.op, ast.USub):
            constant = constant_int(operand.expr)
            if constant is not None:
                return Number(ast.UnaryOp(ast.USub(), number(constant)) if constant >= 0 else number(-constant), "int")
        kind = "bool" if isinstance(node.op, ast.Not) else None
        return self.elementwise(lambda a: ast.UnaryOp(node.op, a), [operand], lambda k: kind or wider("int", k), node)

    def _boolean(self, node: ast.BoolOp) -> Value:
        values: list[Expr] = []
        kinds: list[str] = []
        for part in node.values:
            with self.collected() as before:
                value = self.number(part)
            if before and values:
                self.refuse(part, "calls a function after `and` or `or`; assign its result in a statement before")
            for statement in before:
                self.emit(statement)
            values.append(value.expr)
            kinds.append(value.kind)
        if set(kinds) != {"bool"}:
            self.refuse(node, "chooses between numbers; write `a if test else b`")
        return Number(ast.BoolOp(node.op, values), "bool")

    def _comparison(self, node: ast.Compare) -> Value:
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            self.refuse(node, "looks into a collection, and cannot be derived")
        operands = [self.value(part) for part in (node.left, *node.comparators)]
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            left, right = operands
            one, other = (each.value if isinstance(each, Object) else each for each in (left, right))
            if one is not None and other is not None:
                self.refuse(node, "compares identities")
            return Number(ast.Constant((one is other) == isinstance(node.ops[0], ast.Is)), "bool")
        return self.elementwise(lambda a, *rest: ast.Compare(a, node.ops, [*rest]), operands, lambda *_: "bool", node)

    def test(self, node: ast.expr) -> Expr:
        value = self.number(node)
        return value.expr if value.kind == "bool" else compare(value.expr, ast.NotEq(), number(0))

    def _choice(self, node: ast.IfExp) -> Value:
        test = self.test(node.test)
        if isinstance(test, ast.Constant):
            return self.value(node.body if test.value else node.orelse)
        with self.collected() as first:
            yes = self.value(node.body)
        with self.collected() as second:
            no = self.value(node.orelse)
        if not isinstance(yes, Number) or not isinstance(no, Number):
            self.refuse(node, "chooses between arrays; write an `if` or np.where")
        kind = wider(yes.kind, no.kind)
        if not first and not second:
            return Number(ast.IfExp(test, yes.expr, no.expr), kind)
        text = self.number_variable("t", kind)
        first.append(Assign(text, yes.expr, self.line))
        second.append(Assign(text, no.expr, self.line))
        self.emit(If(test, first, second))
        return Number(name(text), kind)

    # Calls

    def _call(self, node: ast.Call) -> Value:
        function = self.names.scope.meaning(node.func)
        if function is None and isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            if isinstance(owner, Array):
                return self._method(owner, node.func.attr, node)
        if (
            function is None
            and isinstance(node.func, ast.Name)
            and isinstance(self.names.values.get(node.func.id), Object)
        ):
            function = self.names.values[node.func.id].value  # type: ignore[union-attr]
        if function is len:
            return Number(self.array(node.args[0]).dims[0], "int")
        owner_module = getattr(function, "__module__", None)
        reduction = _REDUCERS.get(hashable(function))
        if reduction is not None:
            arguments = [self.value(part) for part in node.args[:1]]
            if isinstance(arguments[0], Array):
                return self.reduced(arguments[0], reduction, node, node.args[1:])
        text = function_name(function)
        if hashable(function) in _MAKERS:
            return self._maker(_MAKERS[function], node)
        if function is np.array and len(node.args) == 1 and not node.keywords:
            return self._listed(self.value(node.args[0]), node)
        if function in (np.dot, np.matmul):
            one, other = (self.value(part) for part in node.args)
            return self.product(one, other, node)
        if function is np.outer:
            left, right = (self._repeated_array(self.array(part)) for part in node.args)
            both = "float" if "float" in (left.kind, right.kind) else "int"
            dims = [left.dims[0], right.dims[0]]
            return Array(
                dims, lambda at: binary(left.element(at[:1]), ast.Mult(), right.element(at[1:])), both, left.dtype
            )
        if row_of(function) or is_flat(function):
            return self._of_numbers(function, node)
        source = python_function(function)
        if isinstance(source, FunctionType) and owner_module not in ("numpy", "math"):
            return self.helper(function, node)
        return self.refuse(
            node, f"calls {text if function is not None else 'something'}, whose derivative is unknown; write a loop"
        )

    def helper(self, function: Any, node: ast.Call) -> Value:
        raise NotImplementedError

    def _of_numbers(self, function: Any, node: ast.Call) -> Value:
        """A function of numbers in the table of slopes."""
        values = [self.value(part) for part in self.names.scope.numbers_of(node)]
        row = row_of(function)
        if row == "where":
            if len(values) != 3:
                self.refuse(node, "needs three arguments; write a loop")
            return self.elementwise(lambda c, a, b: ast.IfExp(c, a, b), values, lambda _, a, b: wider(a, b), node)
        text = self._spelled(function)
        kind: Callable[..., str] = lambda *_: "float"  # noqa: E731
        if row in (
            "abs",
            "absolute",
            "max",
            "min",
            "maximum",
            "minimum",
            "clip",
            "remainder",
            "mod",
            "square",
            "negative",
        ):
            kind = wider
        elif not row:
            rounded = function in (int, round, len) or (
                function.__name__ in _ROUNDED
                and function is not np.round
                and getattr(math, function.__name__, None) is function
            )
            kind = (
                (lambda *_: "int") if rounded else (lambda *_: "bool") if function_name(function) in _TESTS else wider
            )
            if function_name(function) in ("sign", "floor", "ceil", "rint", "trunc", "fix") and not rounded:
                kind = lambda *_: "float"  # noqa: E731
        if row in ("max", "min") and len(values) > 2:
            result = values[0]
            for value in values[1:]:
                result = self.elementwise(lambda a, b: call(text, a, b), [result, value], kind, node)
            return result
        return self.elementwise(lambda *parts: call(text, *parts), values, kind, node)

    def _spelled(self, function: Any) -> str:
        """How the derived function calls a known one."""
        text = function_name(function)
        for prefix, module in (("", builtins), ("math.", math), ("np.", np)):
            if getattr(module, text, None) is function:
                return prefix + text
        raise AssertionError(text)

    def _method(self, owner: Array, text: str, node: ast.Call) -> Value:
        if text in _REDUCTIONS:
            return self.reduced(owner, text, node, node.args)
        if text == "copy":
            return self._maker("copy", ast.copy_location(ast.Call(node.func, [node.func.value], []), node), owner)  # type: ignore[attr-defined]
        if text == "dot" and len(node.args) == 1:
            return self.product(owner, self.value(node.args[0]), node)
        if text == "transpose" and not node.args:
            return Array(owner.dims[::-1], lambda at: owner.element(at[::-1]), owner.kind, owner.dtype, owner.base)
        return self.refuse(node, f"calls the method {text!r} of an array, which cannot be derived; write a loop")

    def _maker(self, how: str, node: ast.Call, owner: Array | None = None) -> Array:
        """np.empty, np.zeros, np.ones, np.full, what is like them, and np.copy."""
        arguments = list(node.args)
        keywords = {str(k.arg): k.value for k in node.keywords}
        base, _, like = how.partition("_")
        dtype: Expr | None = None
        kind = "float"
        if how == "copy" or like:
            source = owner or self.array(arguments.pop(0) if arguments else keywords.pop("a"))
            dims, dtype, kind = source.dims, source.dtype, source.kind
            if how == "copy":
                if source.base and same_element(source):
                    text = self.fresh("t")
                    self.variables[text] = Variable(source.rank, kind, dtype)
                    self.dims[text] = list(dims)
                    self.emit(Copied(text, "copy", source.base))
                else:
                    text = self.stored(source, "t")
                return self._new(text)
        else:
            shape = self.value(arguments.pop(0) if arguments else keywords.pop("shape"))
            parts = shape.parts if isinstance(shape, Items) else [shape]
            dims = []
            for part in parts:
                if not isinstance(part, Number):
                    self.refuse(node, "has a shape that is no tuple of integers")
                dims.append(part.expr)
        fill: Expr | None = None
        filling: Number | None = None
        if base == "full":
            filling = self.number(arguments.pop(0) if arguments else keywords.pop("fill_value"))
            if not names_of(filling.expr) and not loads_of(filling.expr):
                fill, filling = filling.expr, None
            else:
                base = "empty"
        elif base == "ones":
            base, fill = "full", number(1.0)
        given = arguments.pop(0) if arguments else keywords.pop("dtype", None)
        if given is not None:
            dtype, kind = self._dtype(given)
        if arguments or keywords:
            self.refuse(node, "has arguments that cannot be derived")
        if base == "full" and isinstance(fill, ast.Constant) and kind == "float":
            fill = number(float(ast.literal_eval(fill)))
        text = self.made("t", dims, kind, dtype, base, fill)
        if filling is not None:
            value = self.temporary(filling.expr, filling.kind)
            self.fill(self.plain(text), lambda _: value, filling.kind)
        return self._new(text)

    def _listed(self, value: Value, node: ast.Call) -> Array:
        """np.array of a list of numbers, or of an array."""
        if isinstance(value, Array):
            return self._maker("copy", node, value)
        if not isinstance(value, Items):
            self.refuse(node, "makes an array of something other than a list of numbers")
        numbers = [part for part in value.parts if isinstance(part, Number)]
        if len(numbers) < len(value.parts):
            self.refuse(node, "makes an array of something other than a list of numbers; write np.empty and a loop")
        kind = wider("int", *(part.kind for part in numbers))
        text = self.made("t", [number(len(numbers))], kind, None, "empty", None)
        for position, part in enumerate(numbers):
            self.store(load(text, [number(position)]), part, None)
        return self._new(text)

    def _dtype(self, node: ast.expr) -> tuple[Expr | None, str]:
        value = self.value(node)
        if not isinstance(value, Object):
            self.refuse(node, "is expected to be a type")
        if isinstance(value.value, ast.expr):
            owner = (
                value.value.value.id
                if isinstance(value.value, ast.Attribute) and isinstance(value.value.value, ast.Name)
                else ""
            )
            kind = self.variables[owner].kind if owner in self.variables else _kind_of(value.value)
            return value.value, kind
        try:
            dtype = np.dtype(value.value)
        except TypeError:
            self.refuse(node, "is expected to be a type")
        kinds = {"f": "float", "i": "int", "u": "int", "b": "bool"}
        if dtype.kind not in kinds:
            self.refuse(node, "is expected to be a type of real numbers")
        text = "bool_" if dtype.kind == "b" else dtype.name
        return ast.Attribute(name("np"), text, ast.Load()), kinds[dtype.kind]

    def _new(self, text: str) -> Array:
        """An array that has no name of the user's yet."""
        result = self.plain(text)
        self.unnamed.add(text)
        return result

    @property
    def unnamed(self) -> set[str]:
        raise NotImplementedError

    # Reductions and products

    def reduced(self, owner: Array, how: str, node: ast.Call, rest: Sequence[ast.expr]) -> Value:
        """sum, mean, prod, max, min, argmax or argmin of an array, whole or along an axis."""
        keywords = {str(k.arg): k.value for k in node.keywords}
        axis_node = rest[0] if rest else keywords.pop("axis", None)
        keep = keywords.pop("keepdims", None)
        if len(rest) > 1 or keywords or not (keep is None or isinstance(keep, ast.Constant)):
            self.refuse(node, "has arguments that cannot be derived; write a loop")
        axis = None if axis_node is None else constant_int(axis_node)
        if (
            axis_node is not None
            and axis is None
            and not (isinstance(axis_node, ast.Constant) and axis_node.value is None)
        ):
            self.refuse(node, "needs a constant axis; write a loop")
        if axis is not None and not -owner.rank <= axis < owner.rank:
            self.refuse(node, f"has axis {axis} of an array with {owner.rank} dimensions")
        owner = owner if how in ("sum", "mean", "prod") else self.held(owner)
        if axis is None or owner.rank == 1:
            result = self._folded(owner, how, node)
            keeps = isinstance(keep, ast.Constant) and keep.value
            if not keeps:
                return result
            held = Number(self.temporary(result.expr, result.kind), result.kind)
            return Array([number(1)] * owner.rank, lambda _: held.expr, held.kind, owner.dtype)
        axis %= owner.rank
        outer = [size for position, size in enumerate(owner.dims) if position != axis]
        if how in ("sum", "mean") and axis < owner.rank - 1:
            return self._added_up(owner, how, axis, outer, bool(isinstance(keep, ast.Constant) and keep.value), node)
        text = self.made(
            "t",
            outer,
            "int" if how.startswith("arg") else owner.kind,
            owner.dtype if not how.startswith("arg") else None,
            "empty",
            None,
        )

        def one(index: list[Expr]) -> None:
            line = Array(
                [owner.dims[axis]],
                lambda at: owner.element([*index[:axis], at[0], *index[axis:]]),
                owner.kind,
                owner.dtype,
                owner.base,
            )
            self.store(load(text, index), self._folded(line, how, node), None)

        self.nest(outer, one)
        result_array = self._new(text)
        if isinstance(keep, ast.Constant) and keep.value:
            return self.indexed(result_array, [*[ast.Slice()] * axis, None], node)
        return result_array

    def _added_up(
        self, owner: Array, how: str, axis: int, outer: list[Expr], keep: bool, node: ast.Call
    ) -> Number | Array:
        """A sum or mean along an axis that is not the last, in the order of the elements in memory."""
        kind = "float" if how == "mean" else wider("int", owner.kind)
        text = self.made("t", outer, kind, owner.dtype if owner.kind == "float" else None, "zeros", None)

        def add(index: list[Expr]) -> None:
            value = owner.element(index)
            value = binary(value, ast.Div(), owner.dims[axis]) if how == "mean" else value
            self.store(load(text, [*index[:axis], *index[axis + 1 :]]), Number(value, kind), ast.Add())

        self.nest(owner.dims, add)
        result = self._new(text)
        return self.indexed(result, [*[ast.Slice()] * axis, None], node) if keep else result

    def _folded(self, owner: Array, how: str, node: ast.AST) -> Number:
        """A number from all elements of an array."""
        if how in ("sum", "mean", "prod"):
            kind = "float" if how == "mean" else wider("int", owner.kind)
            start = number(1.0 if how == "prod" else 0.0) if kind == "float" else number(int(how == "prod"))
            text = self.number_variable({"sum": "total", "mean": "mean", "prod": "product"}[how], kind)
            self.emit(Assign(text, start))
            op = ast.Mult() if how == "prod" else ast.Add()
            self.nest(owner.dims, lambda at: self.emit(Assign(text, binary(name(text), op, owner.element(at)))))
            if how == "mean":
                size: Expr = owner.dims[0]
                for each in owner.dims[1:]:
                    size = binary(size, ast.Mult(), each)
                self.emit(Assign(text, binary(name(text), ast.Div(), size)))
            return Number(name(text), kind)
        if owner.rank == 1:
            at = self._extreme(owner, "argmax" if how.endswith("max") else "argmin")
            return Number(at, "int") if how.startswith("arg") else Number(owner.element([at]), owner.kind)
        if how.startswith("arg"):
            self.refuse(node, "needs an axis, or an array of one dimension; write a loop")
        flat = self._flat_extreme(owner, how)
        return Number(flat, owner.kind)

    def _extreme(self, owner: Array, how: str) -> Expr:
        """The index of the largest element of a line of an array."""
        probe = name("_0")
        element = element_of(owner.element([probe]))
        assert element is not None
        array, index = element
        whole = [each for each in index if "_0" in names_of(each)]
        text = self.number_variable("at", "int")
        if len(whole) == 1 and same(whole[0], probe) and not any(loads_of(each) for each in index):
            section = [ast.Slice() if "_0" in names_of(each) else each for each in index]
            self.emit(Assign(text, call(f"np.{how}", load(array, section))))
            return name(text)
        op = ast.Gt() if how == "argmax" else ast.Lt()
        self.emit(Assign(text, number(0)))
        variable = self.loop_name()
        test = compare(owner.element([name(variable)]), op, owner.element([name(text)]))
        self.emit(
            For(
                variable,
                number(1),
                self.fixed(owner.dims[0]),
                1,
                [If(test, [Assign(text, name(variable), self.line)], [], self.line)],
            )
        )
        return name(text)

    def _flat_extreme(self, owner: Array, how: str) -> Expr:
        """The largest element of an array of several dimensions, found by its indices."""
        at = [self.number_variable("at", "int") for _ in owner.dims]
        for text in at:
            self.emit(Assign(text, number(0)))
        op = ast.Gt() if how == "max" else ast.Lt()
        best = owner.element([name(text) for text in at])

        def look(index: list[Expr]) -> None:
            found: list[Stmt] = [Assign(text, each, self.line) for text, each in zip(at, index, strict=True)]
            self.emit(If(compare(owner.element(index), op, best), found))

        self.nest(owner.dims, look)
        return best

    def _repeated_array(self, value: Array) -> Array:
        """An array whose elements are read many times."""
        return self.held(value)

    def _whole_section(self, value: Array) -> Expr | None:
        """An array as a section of one, or its transpose, if that is contiguous."""
        probe: list[Expr] = [name(f"_{axis}") for axis in range(value.rank)]
        element = element_of(value.element(probe))
        if element is None or not value.base:
            return None
        array, index = element
        ends = [part.id if isinstance(part, ast.Name) else "" for part in index[len(index) - value.rank :]]
        free = [n for part in index[: len(index) - value.rank] for n in names_of(part) if n in {"_0", "_1"}]
        sizes = self.dims[array][len(index) - value.rank :]
        order = [int(each[1:]) if each in {"_0", "_1"} else -1 for each in ends]
        if free or sorted(order) != [*range(value.rank)]:
            return None
        if any(not same(value.dims[axis], size) for axis, size in zip(order, sizes, strict=True)):
            return None
        section = load(array, [*index[: len(index) - value.rank], *(ast.Slice() for _ in order)])
        return transposed(section) if order == [1, 0] else section

    def product(self, left: Value, right: Value, node: ast.AST) -> Value:
        """The product of vectors and matrices."""
        if not isinstance(left, Array) or not isinstance(right, Array) or left.rank > 2 or right.rank > 2:
            self.refuse(node, "is a product of something other than vectors and matrices; write a loop")
        one, other = self._repeated_array(left), self._repeated_array(right)
        inner = one.dims[-1]
        self.agree(inner, other.dims[0], node)
        kind = wider("int", one.kind, other.kind)
        sections = [self._whole_section(each) for each in (one, other)]
        if one.rank + other.rank > 2 and one.kind == other.kind == "float" and None not in sections:
            text = self.made("t", [*one.dims[:-1], *other.dims[1:]], kind, one.dtype, "empty", None)
            value = binary(*(sections[0], ast.MatMult(), sections[1]))  # type: ignore[arg-type]
            self.emit(Store(text, tuple(ast.Slice() for _ in self.dims[text]), value))
            return self._new(text)
        zero = number(0.0) if kind == "float" else number(0)

        def entry(index: list[Expr]) -> Number:
            rows, columns = index[: one.rank - 1], index[one.rank - 1 :]
            text = self.number_variable("total", kind)
            self.emit(Assign(text, zero))

            def add(at: list[Expr]) -> None:
                term = binary(one.element([*rows, at[0]]), ast.Mult(), other.element([at[0], *columns]))
                self.emit(Assign(text, binary(name(text), ast.Add(), term)))

            self.nest([inner], add)
            return Number(name(text), kind)

        dims = [*one.dims[:-1], *other.dims[1:]]
        if not dims:
            return entry([])
        dtype = one.dtype if one.kind == "float" else other.dtype if other.kind == "float" else None
        text = self.made("t", dims, kind, dtype, "empty", None)
        self.nest(dims, lambda index: self.store(load(text, index), entry(index), None))
        return self._new(text)


_REDUCTIONS = ("sum", "mean", "max", "min", "argmax", "argmin", "prod")
_REDUCERS = {
    **{getattr(np, how): how for how in _REDUCTIONS},
    np.amax: "max",
    np.amin: "min",
    sum: "sum",
}
_MAKERS = {
    np.empty: "empty",
    np.zeros: "zeros",
    np.ones: "ones",
    np.full: "full",
    np.empty_like: "empty_like",
    np.zeros_like: "zeros_like",
    np.ones_like: "ones_like",
    np.full_like: "full_like",
    np.copy: "copy",
}
_TESTS = (
    "isnan",
    "isinf",
    "isfinite",
    "bool",
    "signbit",
    "greater",
    "less",
    "greater_equal",
    "less_equal",
    "equal",
    "not_equal",
)


def _gathered(part: Array, at: int) -> Callable[[list[Expr]], Expr]:
    return lambda index: part.element([index[at]])


def _moved(start: Expr, step: int, at: int) -> Callable[[list[Expr]], Expr]:
    return lambda index: plus(start, index[at]) if step > 0 else minus(start, index[at])


def _is_evident(test: Expr) -> bool:
    """Whether a comparison of slice bounds holds for constants."""
    if not isinstance(test, ast.Compare):
        return False
    left, right = constant_int(test.left), constant_int(test.comparators[0])
    return left is not None and right is not None and left <= right


def _kind_of(dtype: ast.expr) -> str:
    text = dtype.attr if isinstance(dtype, ast.Attribute) else ""
    return "int" if "int" in text else "bool" if "bool" in text else "float"


def broadcast(index: Sequence[Expr], dims: Sequence[Expr]) -> list[Expr]:
    """The index into an array of these sizes, those of one included, from an index into the whole."""
    return [number(0) if is_one(size) else each for each, size in zip(index, dims, strict=True)]


def same_element(value: Array) -> bool:
    """Whether a view is the whole array that it is a view of."""
    probe: list[Expr] = [name(f"_{axis}") for axis in range(value.rank)]
    return bool(value.base) and same(value.element(probe), load(value.base, probe))


def constant_int(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_int(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def is_one(size: Expr) -> bool:
    return isinstance(size, ast.Constant) and size.value == 1
