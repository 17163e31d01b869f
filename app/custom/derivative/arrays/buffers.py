"""Makes arrays of a derived function smaller, and spares what is done to them: zeros, copies, sums in memory.

An element that nothing touched before has its initial value, so that the first sum is an assignment. An array of which
each iteration uses its own part has the size of one part; if that is one element, it is a number.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from functools import partial

from app.custom.derivative.arrays.core import (
    Alloc,
    Assign,
    Copied,
    Expr,
    For,
    Function,
    If,
    Stmt,
    Store,
    Variable,
    While,
    allocated_in,
    binary,
    blocks_of,
    element_of,
    has_break,
    is_product,
    is_whole,
    load,
    loads_of,
    mapped,
    names_of,
    parts_in,
    parts_of,
    plus,
    remembered,
    same,
    shape_of,
    stored_in,
    text_of,
    transformed,
    walk,
)
from app.custom.derivative.arrays.dependence import Access, Dependence
from app.custom.derivative.arrays.fusing import Effects, accesses
from app.custom.derivative.arrays.pushing import function_of
from app.custom.derivative.slopes import EXTREMES, FLAT, KNOWN
from app.custom.derivative.terms import name, number, number_in, with_parts

_CHOOSING = {"sign", "copysign", "remainder", "abs", "absolute", "fabs", "clip"}
SMOOTH = {f for f, row in KNOWN.items() if row not in EXTREMES and row not in _CHOOSING} - FLAT
"""Functions whose results change as little as their arguments do."""

# First touches


def first_touched(block: list[Stmt], function: Function) -> list[Stmt]:
    """The block with the initial value of an array, zero or that of a copied one, used where it is needed."""
    dependence = Dependence(function.with_body(block))
    for array in [s.name for s in walk(block) if isinstance(s, (Alloc, Copied))]:
        if _FirstTouches(block, array, dependence).spare():
            dependence = Dependence(function.with_body(block))
    return block


class _FirstTouches:
    """The accesses of one array, and which of them are the first ones of their elements."""

    def __init__(self, block: list[Stmt], array: str, dependence: Dependence):
        self._block, self._array, self._dependence = block, array, dependence
        self._stores = [s for s in walk(block) if isinstance(s, Store) and s.array == array]

    def spare(self) -> bool:
        """Spare what can be spared; gives whether the statements of the block are others now."""
        array, dependence = self._array, self._dependence
        makers = [s for s in walk(self._block) if isinstance(s, (Alloc, Copied)) and s.name == array]
        found = accesses(array, self._block, dependence)
        if len(makers) > 1 or found is None:
            return False
        maker = makers[0]
        self._accesses, self._home = found, dependence.place(maker).loops
        if any(each.place.counted or each.place.loops[: len(self._home)] != self._home for each in found):
            return False
        if isinstance(maker, Copied) and maker.function == "copy":
            return self._without_copy(maker)
        if maker.kind == "zeros" if isinstance(maker, Alloc) else maker.function == "zeros_like":
            firsts = [s for s in self._stores if s.add and self._is_first(self._access_of(s), s.index)]
            firsts += [s for s in self._stores if s.add and self._is_whole_first(s, maker)]
            for store in firsts:
                store.add = False
            self._empty(maker)
        return False

    def _access_of(self, store: Store) -> Access:
        return next(each for each in self._accesses if each.written and each.index is store.index)

    def _is_first(self, access: Access, index: Sequence[Expr], besides: Sequence[Access] = ()) -> bool:
        """Whether nothing touches an element before this access does, and this does so once."""
        if any(isinstance(part, ast.Slice) for part in index):
            return False
        dependence = self._dependence
        inner = access.place.loops[len(self._home) :]
        if any(dependence.touches_in_other(access, access, loop) for loop in inner):
            return False
        others = [each for each in self._accesses if each is not access and each not in besides]
        return not any(dependence.touches_later(each, access, self._home) for each in others)

    def _is_whole_first(self, store: Store, maker: Alloc | Copied) -> bool:
        """Whether a whole array is the first thing that is added to another one."""
        if not is_whole(store.index) or is_product(store.value) or store not in (_block_of(self._block, maker) or []):
            return False
        own = self._access_of(store)
        return all(each is own or each.place.order > own.place.order for each in self._accesses)

    def _covers(self, store: Store, maker: Alloc | Copied) -> bool:
        """Whether a store assigns each element of an array."""
        if store.add or store.array in names_of(store.value):
            return False
        block = _block_of(self._block, maker) or []
        loops: list[For] = []
        while store not in block:
            inner = [s for s in block if isinstance(s, For) and any(each is store for each in walk([s]))]
            if not inner or has_break(inner[0].body):
                return False
            loops.append(inner[0])
            block = inner[0].body
        texts = [part.id if isinstance(part, ast.Name) else "" for part in store.index]
        if len(texts) != len(loops) or {loop.var for loop in loops} != set(texts):
            return False
        for axis, text in enumerate(texts):
            loop = next(each for each in loops if each.var == text)
            low, high = (loop.start, loop.stop) if loop.step > 0 else (plus(loop.stop, 1), plus(loop.start, 1))
            size = maker.shape[axis] if isinstance(maker, Alloc) else shape_of(maker.source, axis)
            place = self._dependence.place(loop)
            if abs(loop.step) != 1 or number_in(low) != 0:
                return False
            evident = same(high, size) and not names_of(size)
            if not evident and self._dependence.offset(high, size, place) != 0:
                return False
        return True

    def _empty(self, maker: Alloc | Copied, besides: Sequence[Access] = ()) -> bool:
        """Make an array without values, if all its elements get theirs before they are read."""
        for store in self._stores:
            whole = not store.add and self._is_whole_first(store, maker)
            covers = not whole and self._covers(store, maker)
            if whole or (covers and self._is_first(self._access_of(store), store.index, besides)):
                if isinstance(maker, Alloc):
                    maker.kind = "empty"
                else:
                    maker.function = "empty_like"
                return True
        return False

    def _without_copy(self, maker: Copied) -> bool:
        """Read the copied array itself where its copy has not changed yet, if the copy is not needed then."""
        if maker.source in stored_in(self._block):
            return False
        reads = [each for each in self._accesses if not each.written]
        early = [each for each in reads if not any(self._may_change(write, each) for write in self._writes())]
        sections = any(isinstance(part, ast.Slice) for each in early for part in each.index)
        if sections or not early:
            return False
        only_copied = len(early) == len(reads) and not any(s.add for s in self._stores)
        if not only_copied and not self._empty(maker, early):
            return False
        places = {(each.place.order, _text(each.index)) for each in early}
        self._block[:] = self._reading(self._block, maker.source, places)
        return True

    def _writes(self) -> list[Access]:
        return [each for each in self._accesses if each.written]

    def _may_change(self, write: Access, read: Access) -> bool:
        return self._dependence.touches_later(write, read, self._home)

    def _reading(self, block: Sequence[Stmt], source: str, early: set[tuple[int, str]]) -> list[Stmt]:
        """A block that reads the source of a copy at some of the places and indices."""
        result = []
        for statement in block:
            blocks = [self._reading(b, source, early) for b in blocks_of(statement)]
            order = self._dependence.place(statement).order
            of = partial(self._reading_in, source, {text for place, text in early if place == order})
            result.append(transformed(statement, blocks, of))
        return result

    def _reading_in(self, source: str, indices: set[str], node: Expr) -> Expr:
        """An expression that reads another array at some of the indices."""
        element = element_of(node)
        if element is not None and element[0] == self._array and _text(element[1]) in indices:
            return load(source, element[1])
        return with_parts(node, partial(self._reading_in, source, indices)) if indices else node


def _text(index: Sequence[Expr]) -> str:
    return ", ".join(map(text_of, index))


def _block_of(block: list[Stmt], wanted: Stmt) -> list[Stmt] | None:
    """The block that a statement stands in."""
    if any(s is wanted for s in block):
        return block
    inner = (_block_of(b, wanted) for s in block for b in blocks_of(s))
    return next((each for each in inner if each is not None), None)


# Contraction


def contracted(
    block: list[Stmt],
    results: Sequence[str],
    variables: dict[str, Variable],
    records: set[str],
    steady: Callable[[Expr], bool],
) -> list[Stmt]:
    """The block with arrays of which each iteration of a loop uses its own part in the size of one part.

    Those that can be made once for all iterations are added to `records`.
    """
    root = list(block)
    exact = records | {key for key in without_influence(root) if variables[key].kind == "float"}
    pending = [root]
    while pending:
        inner = pending.pop()
        for maker in list(inner):
            if isinstance(maker, (Alloc, Copied)) and maker.name not in results and _is_plain(maker, root):
                _Contraction(root, inner, maker, variables, records, steady, exact).contract()
        pending += [each for statement in inner for each in blocks_of(statement)]
    return root


def _is_plain(maker: Alloc | Copied, root: Sequence[Stmt]) -> bool:
    """Whether an array has no values at first, zeros, or those of something that does not change."""
    if sum(isinstance(s, (Alloc, Copied)) and s.name == maker.name for s in walk(root)) > 1:
        return False
    if isinstance(maker, Alloc):
        return maker.kind in ("empty", "zeros")
    return maker.function != "copy" or maker.source not in stored_in(root) | allocated_in(root)


def _first_value(maker: Alloc | Copied, row: Sequence[Expr]) -> Expr | None:
    """The value of an array, or of a part of one, before anything is stored."""
    if isinstance(maker, Copied) and maker.function == "copy":
        return load(maker.source, row)
    is_zero = maker.kind == "zeros" if isinstance(maker, Alloc) else maker.function == "zeros_like"
    return number(0.0) if is_zero else None


def without_influence(block: Sequence[Stmt]) -> set[str]:
    """The numbers and arrays that decide nothing: no test, index or rounded number depends on their values.

    Only these may be rounded in another way than where the function itself computes them.
    """
    deciding: set[str] = set()
    edges: list[tuple[str, Collection[str]]] = []
    for statement in walk(block):
        if isinstance(statement, (If, While, For)):
            deciding |= {key for part in parts_of(statement) for key in names_of(part)}
        if isinstance(statement, Store):
            deciding |= {key for part in statement.index for key in names_of(part)}
        for part in parts_of(statement):
            deciding |= _deciding_in(part)
        if isinstance(statement, Assign):
            edges.append((statement.name, names_of(statement.value)))
        elif isinstance(statement, Store):
            edges.append((statement.array, names_of(statement.value)))
        elif isinstance(statement, Copied):
            edges.append((statement.name, {statement.source}))
    while True:
        more = {key for target, sources in edges if target in deciding for key in sources} - deciding
        if not more:
            break
        deciding |= more
    return {target for target, _ in edges} - deciding


@remembered
def _deciding_in(node: ast.AST) -> frozenset[str]:
    rounding = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod))
    jumping = isinstance(node, ast.Call) and function_of(node.func) not in SMOOTH
    if rounding or jumping or isinstance(node, (ast.Compare, ast.BoolOp)):
        return names_of(node)
    if isinstance(node, ast.Subscript):
        return names_of(node.slice) | _deciding_in(node.value)
    return frozenset().union(*map(_deciding_in, parts_in(node)))


class _Contraction:
    """Makes one array smaller."""

    def __init__(
        self,
        root: list[Stmt],
        block: list[Stmt],
        maker: Alloc | Copied,
        variables: dict[str, Variable],
        records: set[str],
        steady: Callable[[Expr], bool],
        exact: set[str],
    ):
        self._root, self._block, self._maker, self._variables = root, block, maker, variables
        self._records, self._steady, self._exact = records, steady, exact
        self._array = maker.name

    def contract(self) -> None:
        users = [s for s in self._block if s is not self._maker and self._array in Effects([s]).named]
        if len(users) != 1 or not isinstance(users[0], For):
            return
        inside = sum(self._array in Effects([s]).named for s in walk(self._root) if not blocks_of(s))
        own = sum(self._array in Effects([s]).named for s in walk(users) if not blocks_of(s))
        axis = self._own_axis(users[0]) if inside == own + 1 else None
        if axis is not None:
            self._contract(users[0], axis)

    def _own_axis(self, loop: For) -> int | None:
        """The axis along which each iteration uses its own part."""
        array = self._array
        parts = [part for s in walk([loop]) for part in parts_of(s)]
        loads = [index for part in parts for text, index in loads_of(part) if text == array]
        bare = sum(isinstance(n, ast.Name) and n.id == array for part in parts for n in ast.walk(part))
        copied = any(isinstance(s, Copied) and s.source == array for s in walk([loop]))
        low = number_in(loop.start if loop.step > 0 else plus(loop.stop, 1))
        rebound = any(isinstance(s, For) and s.var == loop.var for s in walk(loop.body))
        if bare > len(loads) or copied or rebound or low is None or low < 0:
            return None
        places = [*loads, *(s.index for s in walk([loop]) if isinstance(s, Store) and s.array == array)]
        own = (k for k in range(len(places[0])) if all(_is_variable(i[k], loop.var) for i in places))
        return next(own, None)

    def _contract(self, loop: For, axis: int) -> None:
        maker, array = self._maker, self._array
        rank = self._variables[array].rank
        rest = [k for k in range(rank) if k != axis]
        if not rest and array not in self._exact:
            return
        start: list[Stmt] = []
        row: list[Expr] = [name(loop.var) if k == axis else ast.Slice() for k in range(rank)]
        value = _first_value(maker, row)
        if value is not None:
            whole = tuple(ast.Slice() for _ in rest)
            start = [Store(array, whole, value, False, loop.line) if rest else Assign(array, value, loop.line)]
        place, at = self._block.index(maker), self._block.index(loop)
        body = [_Contracting(array, axis, rank).statement(s) for s in loop.body]
        if rest:
            sizes = [maker.shape[k] if isinstance(maker, Alloc) else shape_of(maker.source, k) for k in rest]
            dtype = maker.dtype if isinstance(maker, Alloc) else ast.Attribute(name(maker.source), "dtype", ast.Load())
            smaller = Alloc(array, "empty", tuple(sizes), dtype, None, maker.line)
            inside = all(map(self._steady, sizes))
            self._records |= {array} if inside else set()
            self._block[at] = mapped(loop, [[*([smaller] if inside else []), *start, *body]])
            self._block[place : place + 1] = [] if inside else [smaller]
        else:
            self._block[at] = mapped(loop, [[*start, *body]])
            del self._block[place]
        old = self._variables[array]
        self._variables[array] = Variable(rank - 1, old.kind, old.dtype if rest else None)


def _is_variable(node: Expr, text: str) -> bool:
    return isinstance(node, ast.Name) and node.id == text


class _Contracting:
    """Leaves out an axis of an array."""

    def __init__(self, array: str, axis: int, rank: int):
        self._array, self._axis, self._rank = array, axis, rank

    def statement(self, statement: Stmt) -> Stmt:
        blocks = [[self.statement(s) for s in block] for block in blocks_of(statement)]
        result = transformed(statement, blocks, self._of)
        if not isinstance(result, Store) or result.array != self._array:
            return result
        if self._rank == 1:
            value = binary(name(result.array), ast.Add(), result.value) if result.add else result.value
            return Assign(result.array, value, result.line)
        result.index = self._index(result.index)
        return result

    def _index(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(part for k, part in enumerate(index) if k != self._axis)

    def _of(self, node: Expr) -> Expr:
        if self._array not in names_of(node):
            return node
        node = with_parts(node, self._of)
        element = element_of(node)
        if element is None or element[0] != self._array:
            return node
        index = self._index(element[1])
        return load(self._array, index) if index else name(self._array)
