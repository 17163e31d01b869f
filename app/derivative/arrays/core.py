"""The small language in which functions on arrays are derived: statements over numbers and elements of arrays.

Expressions are trees of Python that are never changed in place. An array has one place where it is allocated; views,
whole-array expressions and helper functions do not exist here, since the reader has replaced them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TypeAlias, TypeVar

from app.derivative.terms import name, negative, number, with_names, with_parts
from app.functions import text_of_tree

Expr: TypeAlias = ast.expr
T = TypeVar("T")
_NONE: frozenset[str] = frozenset()


def remembered(function: Callable[[ast.AST], T]) -> Callable[[ast.AST], T]:
    """A function of expressions. Since these never change, each keeps its result."""
    key = f"_{function.__name__}"

    @wraps(function)
    def result(node: ast.AST) -> T:
        fields = vars(node)
        if key not in fields:
            fields[key] = function(node)
        value: T = fields[key]
        return value

    return result


def parts_in(node: ast.AST) -> Iterator[ast.expr]:
    """The direct parts of an expression."""
    for key in node._fields:
        value = getattr(node, key, None)
        if isinstance(value, ast.expr):
            yield value
        elif isinstance(value, list):
            yield from (each for each in value if isinstance(each, ast.expr))


@dataclass(eq=False)
class Assign:
    """A number gets a value."""

    name: str
    value: Expr
    line: int = 0


@dataclass(eq=False)
class Store:
    """An element of an array gets a value, or has it added; with slices in the index, a section does."""

    array: str
    index: tuple[Expr, ...]
    value: Expr
    add: bool = False
    line: int = 0


@dataclass(eq=False)
class Alloc:
    """An array is made: `kind` is empty, zeros or full."""

    name: str
    kind: str
    shape: tuple[Expr, ...]
    dtype: Expr | None
    fill: Expr | None = None
    line: int = 0


@dataclass(eq=False)
class Copied:
    """An array is made as a copy of another, or as zeros like it."""

    name: str
    function: str
    source: str
    line: int = 0


@dataclass(eq=False)
class For:
    """A loop over a range with a constant step."""

    var: str
    start: Expr
    stop: Expr
    step: int
    body: list[Stmt]
    line: int = 0
    backward: bool = False
    """Whether it goes through the iterations of another loop in reverse order."""


@dataclass(eq=False)
class While:
    """A loop that only counts: it has no derivative, and a loop over the range that it has counted follows."""

    test: Expr
    body: list[Stmt]
    line: int = 0


@dataclass(eq=False)
class If:
    test: Expr
    body: list[Stmt]
    orelse: list[Stmt] = field(default_factory=list)
    line: int = 0


@dataclass(eq=False)
class Break:
    """Leaves the innermost loop. Nothing follows it in the body of the loop."""

    line: int = 0


@dataclass(eq=False)
class Forget:
    """No former value of a number or an array is read from here on. It leaves no trace in the source."""

    name: str
    line: int = 0


@dataclass(eq=False)
class Guard:
    """Raises a ValueError if a test fails that the derivation relies on."""

    test: Expr
    message: str
    line: int = 0


Stmt: TypeAlias = Assign | Store | Alloc | Copied | For | While | If | Break | Forget | Guard


@dataclass
class Variable:
    """What is known of a name: its number of dimensions and the kind of its numbers."""

    rank: int
    kind: str
    """float, int or bool"""
    dtype: Expr | None = None
    """The type of an array's elements as source; None for that of Python's numbers."""


@dataclass
class Function:
    """A function in the small language."""

    name: str
    body: list[Stmt]
    variables: dict[str, Variable]
    inputs: list[str]
    """The parameters that get a gradient if they are floats: arrays, and numbers that are values of the network."""
    settings: list[str]
    """The parameters that are numbers, those among the inputs included."""
    outputs: list[str]
    shapes: Mapping[str, Alloc | Copied] = field(default_factory=dict)
    """For parameters that have the shape of an array of another function, how that array is made."""

    def with_body(self, body: list[Stmt]) -> Function:
        """The function with another body."""
        return replace(self, body=body)


# Expressions


def load(array: str, index: Sequence[Expr]) -> Expr:
    """An element, or with slices in the index a section, of an array."""
    inner = index[0] if len(index) == 1 else ast.Tuple(list(index), ast.Load())
    return ast.Subscript(name(array), inner, ast.Load())


def shape_of(array: str, axis: int) -> Expr:
    return ast.Subscript(ast.Attribute(name(array), "shape", ast.Load()), number(axis), ast.Load())


def call(function: str, *arguments: Expr) -> Expr:
    """A call of a function by its name, which may have a module before it."""
    owner, _, text = function.rpartition(".")
    target: Expr = ast.Attribute(name(owner), text, ast.Load()) if owner else name(text)
    return ast.Call(target, list(arguments), [])


def compare(left: Expr, op: ast.cmpop, right: Expr) -> Expr:
    return ast.Compare(left, [op], [right])


def binary(left: Expr, op: ast.operator, right: Expr) -> Expr:
    return ast.BinOp(left, op, right)


def _constant(node: Expr) -> Expr:
    """A negative integer as one constant."""
    is_negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    value = node.operand if isinstance(node, ast.UnaryOp) and is_negated else None
    return number(-value.value) if isinstance(value, ast.Constant) and isinstance(value.value, int) else node


def plus(left: Expr, right: Expr | int) -> Expr:
    """A sum of integers, without zeros."""
    left, right = _constant(left), _constant(number(right) if isinstance(right, int) else right)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ast.Constant) and isinstance(one.value, int):
            if one.value == 0:
                return other
            if isinstance(other, ast.Constant) and isinstance(other.value, int):
                return number(one.value + other.value)
            if isinstance(other, ast.BinOp) and isinstance(other.right, ast.Constant):
                inner, value = other.right.value, one.value
                if isinstance(inner, int) and isinstance(other.op, (ast.Add, ast.Sub)):
                    return plus(other.left, value + (inner if isinstance(other.op, ast.Add) else -inner))
            if one.value < 0:
                return binary(other, ast.Sub(), number(-one.value))
            return binary(other, ast.Add(), one)
    if isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub):
        return minus(left, right.operand)
    return binary(left, ast.Add(), right)


def minus(left: Expr, right: Expr | int) -> Expr:
    """A difference of integers, without zeros."""
    left, right = _constant(left), _constant(number(right) if isinstance(right, int) else right)
    if isinstance(right, ast.Constant) and isinstance(right.value, int):
        return plus(left, -right.value)
    if same(left, right):
        return number(0)
    for node, sign in ((left, 1), (right, -1)):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, (ast.Add, ast.Sub))
            and isinstance(node.right, ast.Constant)
        ):
            constant = node.right.value
            if isinstance(constant, int):
                rest = minus(node.left, right) if node is left else minus(left, node.left)
                return plus(rest, constant * sign if isinstance(node.op, ast.Add) else -constant * sign)
    return binary(left, ast.Sub(), right)


@remembered
def text_of(node: ast.AST) -> str:
    """An expression as text."""
    return text_of_tree(node)


def same(left: Expr, right: Expr) -> bool:
    return left is right or text_of(left) == text_of(right)


def element_of(node: ast.AST) -> tuple[str, tuple[Expr, ...]] | None:
    """The array and the index, if an expression is an element of an array."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice
        return node.value.id, tuple(inner.elts) if isinstance(inner, ast.Tuple) else (inner,)
    return None


def transposed(node: Expr) -> Expr:
    """The transpose of a section of two axes."""
    is_transposed = isinstance(node, ast.Attribute) and node.attr == "T"
    return node.value if isinstance(node, ast.Attribute) and is_transposed else ast.Attribute(node, "T", ast.Load())


def is_product(node: ast.AST) -> bool:
    """Whether an expression is the product of a matrix with a matrix or a vector."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)


def is_whole(index: Sequence[Expr]) -> bool:
    return all(isinstance(part, ast.Slice) and part.lower is part.upper is None for part in index)


def is_shape(node: ast.AST) -> bool:
    """Whether an expression is the size of an array along an axis."""
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype")


@remembered
def names_of(node: ast.AST) -> frozenset[str]:
    """The variables that an expression reads. The shape of an array is not read, as it never changes."""
    if isinstance(node, ast.Name):
        return frozenset({node.id})
    if isinstance(node, ast.Call):  # what it calls is no variable
        children: Iterable[ast.AST] = node.args
    elif isinstance(node, ast.Attribute) and node.attr != "T":
        return _NONE
    else:
        children = parts_in(node)
    return _NONE.union(*map(names_of, children))


@remembered
def shapes_of(node: ast.AST) -> frozenset[str]:
    """The arrays whose shape or type an expression reads."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return frozenset({node.value.id} if is_shape(node) else ())
    return _NONE.union(*map(shapes_of, parts_in(node)))


def added_to(value: Expr, key: str) -> Expr | None:
    """What is added, if an expression adds something to a number."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return None
    if not isinstance(value.left, ast.Name) or value.left.id != key or key in names_of(value.right):
        return None
    return value.right if isinstance(value.op, ast.Add) else negative(value.right)


@remembered
def loads_of(node: ast.AST) -> tuple[tuple[str, tuple[Expr, ...]], ...]:
    """The elements that an expression reads."""
    return tuple(element for part in ast.walk(node) if (element := element_of(part)) is not None)


@remembered
def whole_in(node: ast.AST) -> frozenset[str]:
    """The numbers, and the arrays without an index, that an expression reads."""
    if isinstance(node, ast.Name):
        return frozenset({node.id})
    element = element_of(node)
    children = parts_in(node) if element is None else element[1]
    return _NONE if is_shape(node) else _NONE.union(*map(whole_in, children))


def replaced(node: Expr, names: Mapping[str, Expr]) -> Expr:
    """An expression with other expressions in place of variables."""
    if names.keys().isdisjoint(names_of(node)) and names.keys().isdisjoint(shapes_of(node)):
        return node
    return with_names(node, names)


# Statements


def parts_of(statement: Stmt) -> list[Expr]:
    """The expressions of a statement itself, without those of the statements inside of it."""
    if isinstance(statement, Assign):
        return [statement.value]
    if isinstance(statement, Store):
        return [*statement.index, statement.value]
    if isinstance(statement, Alloc):
        return [*statement.shape, *(e for e in (statement.dtype, statement.fill) if e is not None)]
    if isinstance(statement, For):
        return [statement.start, statement.stop]
    if isinstance(statement, (If, While, Guard)):
        return [statement.test]
    return []


def blocks_of(statement: Stmt) -> list[list[Stmt]]:
    """The blocks inside of a statement."""
    if isinstance(statement, (For, While)):
        return [statement.body]
    return [statement.body, statement.orelse] if isinstance(statement, If) else []


def walk(block: Sequence[Stmt]) -> list[Stmt]:
    """All statements, those inside of others included."""
    result: list[Stmt] = []
    _walk(block, result)
    return result


def _walk(block: Sequence[Stmt], result: list[Stmt]) -> None:
    for statement in block:
        result.append(statement)
        for inner in blocks_of(statement):
            _walk(inner, result)


def mapped(statement: Stmt, block: list[list[Stmt]] | None = None, names: Mapping[str, Expr] | None = None) -> Stmt:
    """A copy of a statement, with other blocks inside of it, and with expressions in place of variables."""
    blocks = block if block is not None else [[mapped(s, None, names) for s in b] for b in blocks_of(statement)]
    return transformed(statement, blocks, lambda node: replaced(node, names) if names else node)


def transformed(statement: Stmt, blocks: list[list[Stmt]], of: Callable[[Expr], Expr]) -> Stmt:
    """A copy of a statement with other blocks inside of it, and other expressions."""
    if isinstance(statement, Assign):
        return Assign(statement.name, of(statement.value), statement.line)
    if isinstance(statement, Store):
        index = tuple(of(i) for i in statement.index)
        return Store(statement.array, index, of(statement.value), statement.add, statement.line)
    if isinstance(statement, Alloc):
        fill = None if statement.fill is None else of(statement.fill)
        shape = tuple(of(s) for s in statement.shape)
        return Alloc(statement.name, statement.kind, shape, statement.dtype, fill, statement.line)
    if isinstance(statement, Copied):
        return Copied(statement.name, statement.function, statement.source, statement.line)
    if isinstance(statement, For):
        start, stop = of(statement.start), of(statement.stop)
        return For(statement.var, start, stop, statement.step, blocks[0], statement.line, statement.backward)
    if isinstance(statement, While):
        return While(of(statement.test), blocks[0], statement.line)
    if isinstance(statement, If):
        return If(of(statement.test), blocks[0], blocks[1], statement.line)
    if isinstance(statement, Forget):
        return Forget(statement.name, statement.line)
    if isinstance(statement, Guard):
        return Guard(of(statement.test), statement.message, statement.line)
    return Break(statement.line)


def renamed(statement: Stmt, names: Mapping[str, str]) -> Stmt:
    """A copy of a statement with other names of numbers and arrays."""
    result = mapped(statement, None, {old: name(new) for old, new in names.items()})
    for each in walk([result]):
        for key in _NAMES:
            if getattr(each, key, None) in names:
                setattr(each, key, names[getattr(each, key)])
    return result


_NAMES = ("name", "array", "source")


def named_in(statement: Stmt) -> set[str]:
    """The numbers and arrays that a statement itself refers to, also by their shapes."""
    texts = {n.id for part in parts_of(statement) for n in ast.walk(part) if isinstance(n, ast.Name)}
    return texts | {getattr(statement, key, "") for key in _NAMES}


def assigned_in(block: Sequence[Stmt]) -> set[str]:
    """The numbers that a block assigns, without variables of loops."""
    return {s.name for s in walk(block) if isinstance(s, Assign)}


def stored_in(block: Sequence[Stmt]) -> set[str]:
    """The arrays that a block stores into."""
    return {s.array for s in walk(block) if isinstance(s, Store)}


def allocated_in(block: Sequence[Stmt]) -> set[str]:
    return {s.name for s in walk(block) if isinstance(s, (Alloc, Copied))}


def has_break(body: Sequence[Stmt]) -> bool:
    """Whether a loop with this body can be left early."""
    for statement in body:
        if isinstance(statement, Break):
            return True
        if isinstance(statement, If) and (has_break(statement.body) or has_break(statement.orelse)):
            return True
    return False


def tree_of(block: Sequence[Stmt]) -> list[ast.stmt]:
    """Statements as a tree of Python."""
    result: list[ast.stmt] = []
    for before, statement, after in zip([None, *block], block, [*block[1:], None], strict=False):
        if isinstance(statement, Store) and _is_made_by(before, statement):
            result.append(_assign(statement.array, _short(statement.value)))
        elif not _is_made_by(statement, after):
            result.append(_tree(statement))
    return result or [ast.Pass()]


def _is_made_by(alloc: Stmt | None, store: Stmt | None) -> bool:
    """Whether an array need not be made before a product is stored into it, as the product makes one."""
    if not isinstance(alloc, Alloc) or not isinstance(store, Store) or store.add or not is_product(store.value):
        return False
    return store.array == alloc.name and is_whole(store.index)


def _short(node: Expr) -> Expr:
    """An expression without the slices at the end of an index."""
    element = element_of(node)
    if element is None:
        return with_parts(node, _short)
    array, index = element
    while index and is_whole(index[-1:]):
        index = index[:-1]
    return load(array, index) if index else name(array)


def _tree(statement: Stmt) -> ast.stmt:
    if isinstance(statement, Assign):
        value = statement.value
        if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name) and value.left.id == statement.name:
            return ast.AugAssign(ast.Name(statement.name, ast.Store()), value.op, value.right)
        return ast.Assign([ast.Name(statement.name, ast.Store())], value)
    if isinstance(statement, Store):
        return _store(statement)
    if isinstance(statement, Alloc):
        shape = statement.shape[0] if len(statement.shape) == 1 else ast.Tuple([*statement.shape], ast.Load())
        extra = [e for e in (statement.fill, statement.dtype) if e is not None]
        return _assign(statement.name, call(f"np.{statement.kind}", shape, *extra))
    if isinstance(statement, Copied):
        return _assign(statement.name, call(f"np.{statement.function}", name(statement.source)))
    if isinstance(statement, For):
        bounds = [statement.start, statement.stop, number(statement.step)]
        if statement.step == 1:
            bounds = bounds[:2]
            if isinstance(statement.start, ast.Constant) and statement.start.value == 0:
                bounds = bounds[1:]
        return ast.For(ast.Name(statement.var, ast.Store()), call("range", *bounds), tree_of(statement.body), [])
    if isinstance(statement, While):
        return ast.While(statement.test, tree_of(statement.body), [])
    if isinstance(statement, If):
        return ast.If(statement.test, tree_of(statement.body), tree_of(statement.orelse) if statement.orelse else [])
    if isinstance(statement, Guard):
        error = ast.Raise(call("ValueError", ast.Constant(statement.message)), None)
        return ast.If(opposite(statement.test), [error], [])
    return ast.Break()


def _assign(target: str, value: Expr) -> ast.stmt:
    return ast.Assign([ast.Name(target, ast.Store())], value)


def _store(statement: Store) -> ast.stmt:
    target = load(statement.array, statement.index)
    assert isinstance(target, ast.Subscript)
    target.ctx = ast.Store()
    value = statement.value
    if is_product(value):
        short = _short(load(statement.array, statement.index)) if statement.add else target
        assert isinstance(short, (ast.Name, ast.Subscript))
        short.ctx = ast.Store()
        value = _short(value)
        return ast.AugAssign(short, ast.Add(), value) if statement.add else ast.Assign([short], value)
    if statement.add:
        negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
        inner = value.operand if isinstance(value, ast.UnaryOp) and negated else value
        return ast.AugAssign(target, ast.Sub() if negated else ast.Add(), inner)
    if (
        isinstance(value, ast.BinOp)
        and element_of(value.left)
        and same(value.left, load(statement.array, statement.index))
    ):
        return ast.AugAssign(target, value.op, value.right)
    return ast.Assign([target], value)


_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


def opposite(test: Expr) -> Expr:
    """The test that holds where another does not. `not a < b` stays so, since either may be NaN."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITES:
        return ast.Compare(test.left, [_OPPOSITES[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)
