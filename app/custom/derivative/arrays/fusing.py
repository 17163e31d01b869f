"""Joins loops and branches of a derived function, so that values are used where they are computed.

Statements change places only if neither changes what the other reads; two that only add to one array, or to one
number, may change places, too. Loops over one range are joined if no iteration of the second one needs, or undoes,
what a later iteration of the first one does.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from app.custom.derivative.arrays.core import (
    Alloc,
    Assign,
    Copied,
    Expr,
    For,
    Forget,
    Function,
    Guard,
    If,
    Stmt,
    Store,
    added_to,
    assigned_in,
    blocks_of,
    has_break,
    load,
    loads_of,
    mapped,
    names_of,
    parts_of,
    same,
    shapes_of,
    text_of,
    walk,
    whole_in,
)
from app.custom.derivative.arrays.dependence import Access, Dependence
from app.custom.derivative.arrays.flow import Flow
from app.custom.derivative.arrays.reader import exposed
from app.custom.derivative.terms import name, negative, number, product, total

_WIDTH = 100
"""How long the sum of two statements may be."""


class Effects:
    """What statements read and change."""

    def __init__(self, block: Sequence[Stmt]):
        self.reads: set[str] = set()
        self.shapes: set[str] = set()
        self.assigned: set[str] = set()
        """Numbers and arrays that get other values."""
        self.added: set[str] = set()
        """Those to which something is added."""
        self.made: set[str] = set()
        """Arrays that are made."""
        self.is_fixed = False
        """Whether they may raise an error, or leave a loop around them, so that they have to stay where they are."""
        variables = set()
        for statement in walk(block):
            if isinstance(statement, For):
                variables.add(statement.var)
            self._add(statement)
        self.is_fixed |= has_break(block)
        self.reads -= variables

    def _add(self, statement: Stmt) -> None:
        parts = parts_of(statement)
        self.is_fixed |= isinstance(statement, Guard)
        if isinstance(statement, Assign):
            value = added_to(statement.value, statement.name)
            parts = parts if value is None else [value]
            (self.assigned if value is None else self.added).add(statement.name)
        elif isinstance(statement, Store):
            (self.added if statement.add else self.assigned).add(statement.array)
        elif isinstance(statement, (Alloc, Copied)):
            self.made.add(statement.name)
            if isinstance(statement, Copied):
                (self.reads if statement.function == "copy" else self.shapes).add(statement.source)
        elif isinstance(statement, Forget):
            self.assigned.add(statement.name)
        for part in parts:
            self.reads |= names_of(part)
            self.shapes |= shapes_of(part)

    @property
    def changed(self) -> set[str]:
        return self.assigned | self.added | self.made

    @property
    def named(self) -> set[str]:
        return self.changed | self.reads | self.shapes

    def commutes_with(self, other: Effects) -> bool:
        """Whether statements with these effects may change places."""
        if self.is_fixed or other.is_fixed:
            return False
        for one, two in ((self, other), (other, self)):
            if one.changed & two.reads or one.assigned & two.changed or one.made & two.named:
                return False
        return True


def fused(block: Sequence[Stmt], results: Sequence[str], function: Function) -> list[Stmt]:
    """The block with loops over one range, and branches of one test, joined."""
    fusing = _Fusing([mapped(s) for s in block], results, function)
    fusing.block(fusing.root)
    return fusing.root


class _Fusing:
    def __init__(self, root: list[Stmt], results: Sequence[str], function: Function):
        self.root, self._results, self._function = root, results, function

    def block(self, block: list[Stmt]) -> None:
        position = 0
        while position < len(block):
            later = range(position + 1, len(block)) if isinstance(block[position], (For, If)) else ()
            position = next((p for q in later if (p := self._fuse(block, position, q)) is not None), position + 1)
        for statement in block:
            for inner in blocks_of(statement):
                self.block(inner)

    def _fuse(self, block: list[Stmt], position: int, other: int) -> int | None:
        """Join two statements of a block; gives the place of the result, or None if they cannot be joined."""
        first, second = block[position], block[other]
        loops = isinstance(first, For) and isinstance(second, For) and self._are_alike(first, second)
        if not loops and not (isinstance(first, If) and isinstance(second, If) and same(first.test, second.test)):
            return None
        own, following = Effects([first]), Effects([second])
        between = [(statement, Effects([statement])) for statement in block[position + 1 : other]]
        parted = _parted(between, own, following, False) or _parted(between, own, following, True)
        if parted is None or own.is_fixed or following.is_fixed:
            return None
        before, after = parted
        old = list(block)
        if isinstance(first, If) and isinstance(second, If):
            if own.changed & names_of(first.test):
                return None
            joined: Stmt = If(first.test, [*first.body, *second.body], [*first.orelse, *second.orelse], first.line)
            block[position : other + 1] = [*before, joined, *after]
            return position + len(before)
        assert isinstance(first, For)
        assert isinstance(second, For)
        if not self._has_own_numbers(first, second):
            return None
        names = {second.var: name(first.var)}
        moved = second.body if first.var == second.var else [mapped(s, None, names) for s in second.body]
        backward = first.backward and second.backward
        loop = For(first.var, first.start, first.stop, first.step, [*first.body, *moved], first.line, backward)
        block[position : other + 1] = [*before, loop, *after]
        if not self._is_right(loop, first.body, moved):
            block[:] = old
            return None
        return position + len(before)

    def _are_alike(self, first: For, second: For) -> bool:
        if first.step != second.step or not same(first.start, second.start) or not same(first.stop, second.stop):
            return False
        bounds = names_of(first.start) | names_of(first.stop)
        inner = {s.var for s in walk([*first.body, *second.body]) if isinstance(s, For)}
        clash = first.var != second.var and first.var in Effects(second.body).named
        return not bounds & Effects([first]).changed and not clash and not inner & {first.var, second.var}

    def _has_own_numbers(self, first: For, second: For) -> bool:
        """Whether no number is carried from one of the loops into the other."""
        one, two = Effects(first.body), Effects(second.body)
        shared = assigned_in(first.body) & two.named | assigned_in(second.body) & one.named
        shared -= (one.added - one.assigned - one.reads) & (two.added - two.assigned - two.reads)
        if not shared:
            return True
        own = assigned_in(first.body) & assigned_in(second.body) - exposed(first.body) - exposed(second.body)
        if shared - own:
            return False
        inside = {id(s) for s in walk([first, second])}
        flow = Flow(self.root, self._results)
        return not any(
            inside & uses.get(key, frozenset())
            for user, uses in flow.uses.items()
            if user not in inside
            for key in shared
        )

    def _is_right(self, loop: For, first: Sequence[Stmt], second: Sequence[Stmt]) -> bool:
        """Whether no iteration of the second loop touches what a later one of the first loop touches, too."""
        one, two = Effects(first), Effects(second)
        only_added = (one.added - one.assigned - one.reads) & (two.added - two.assigned - two.reads)
        shared = (one.changed & two.named | two.changed & one.named) - only_added
        arrays = {key for key in shared if self._function.variables[key].rank}
        if arrays & (one.made | two.made):
            return False
        dependence = Dependence(self._function.with_body(self.root))
        outer = dependence.place(loop).loops
        for array in arrays:
            earlier, later = accesses(array, second, dependence), accesses(array, first, dependence)
            if earlier is None or later is None:
                return False
            adds = all(s.add for s in walk([loop]) if isinstance(s, Store) and s.array == array)
            for access in earlier:
                for each in later:
                    ordered = access.written != each.written or (access.written and not adds)
                    if ordered and dependence.may_touch(access, each, outer, loop):
                        return False
        return True


def _parted(
    between: Sequence[tuple[Stmt, Effects]], own: Effects, following: Effects, early: bool
) -> tuple[list[Stmt], list[Stmt]] | None:
    """The statements between two that are joined, before and after the result; None if they cannot stand there."""
    before: list[Stmt] = []
    after: list[tuple[Stmt, Effects]] = []
    for statement, effects in between:
        is_movable = effects.commutes_with(own) and all(effects.commutes_with(each) for _, each in after)
        can_follow = effects.commutes_with(following)
        if is_movable and (early or not can_follow):
            before.append(statement)
        elif can_follow:
            after.append((statement, effects))
        else:
            return None
    return before, [statement for statement, _ in after]


def accesses(array: str, block: Sequence[Stmt], dependence: Dependence) -> list[Access] | None:
    """The accesses of an array in a block; None if it is also named without an index."""
    result: list[Access] = []
    for statement in walk(block):
        if isinstance(statement, Copied) and array == statement.source and statement.function == "copy":
            return None
        place = dependence.place(statement)
        for part in parts_of(statement):
            if array in whole_in(part):
                return None
            result += [Access(array, index, place) for text, index in loads_of(part) if text == array]
        if isinstance(statement, Store) and statement.array == array:
            result.append(Access(array, statement.index, place, written=True))
    return result


# Sums


def summed(block: Sequence[Stmt], free: set[str]) -> list[Stmt]:
    """The block with one statement in place of two that add to one element, if nothing between them prevents it.

    `free` are numbers and arrays that may be rounded in another way.
    """
    result = [mapped(s, [summed(b, free) for b in blocks_of(s)]) if blocks_of(s) else s for s in block]
    result = [_with_one_sum(s) if isinstance(s, Assign) and s.name in free else s for s in result]
    position = 0
    while position < len(result):
        if not _sum_up(result, position, free):
            position += 1
    return result


def _with_one_sum(statement: Assign) -> Assign:
    """`a = a + (b + c)` for `a = a + b + c`."""
    terms: list[Expr] = []
    rest = statement.value
    while isinstance(rest, ast.BinOp) and isinstance(rest.op, (ast.Add, ast.Sub)):
        terms.insert(0, rest.right if isinstance(rest.op, ast.Add) else negative(rest.right))
        rest = rest.left
    if len(terms) < 2 or not isinstance(rest, ast.Name) or rest.id != statement.name:
        return statement
    value = terms[0]
    for term in terms[1:]:
        value = _sum(value, term)
    return Assign(statement.name, total(rest, value) or rest, statement.line)


def _sum_up(block: list[Stmt], position: int, free: set[str]) -> bool:
    """Add what a statement adds in a later one; gives whether there is such a one."""
    first = block[position]
    if not isinstance(first, Store) or first.array not in free or any(isinstance(i, ast.Slice) for i in first.index):
        return False
    own = Effects([first])
    for place in range(position + 1, len(block)):
        second = block[place]
        if isinstance(second, Store) and second.array == first.array and second.add and _is_one(first, second):
            value = _sum(first.value, second.value)
            if first.array in names_of(second.value) or len(text_of(value)) > _WIDTH:
                return False
            block[place] = Store(first.array, first.index, value, first.add, first.line)
            del block[position]
            return True
        if not Effects([second]).commutes_with(own):
            return False
    return False


def _sum(first: Expr, second: Expr) -> Expr:
    """A sum with as few signs as a person would write."""
    if same(first, second):
        return product(number(2), first) or first
    negated = [isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.USub) for each in (first, second)]
    if all(negated):
        return negative(_sum(negative(first), negative(second)))
    if negated[0]:
        first, second = second, first
    return total(first, second) or first


def _is_one(first: Store, second: Store) -> bool:
    return len(first.index) == len(second.index) and all(map(same, first.index, second.index))


# Stores without effect


def without_idle(block: Sequence[Stmt]) -> list[Stmt]:
    """The block without what is overwritten before it is read, and without putting back what is still there."""
    result = [mapped(s, [without_idle(b) for b in blocks_of(s)]) if blocks_of(s) else s for s in block]
    position = 0
    while position < len(result):
        if _is_overwritten(result, position) or _is_there(result, position):
            del result[position]
            position = 0
        else:
            position += 1
    return result


def _is_overwritten(block: Sequence[Stmt], position: int) -> bool:
    """Whether a store, or a loop that only stores into one array, is undone before anything reads the array."""
    statement = block[position]
    if not isinstance(statement, (Store, For)):
        return False
    own = Effects([statement])
    inner = {s.var for s in walk([statement]) if isinstance(s, For)}
    if len(own.changed) != 1 or own.made or own.is_fixed:
        return False
    (array,) = own.changed
    stores = [s for s in walk([statement]) if isinstance(s, Store)]
    for later in block[position + 1 :]:
        effects = Effects([later])
        again = later.index if isinstance(later, Store) and later.array == array and not later.add else None
        covered = again is not None and all(_covers(again, store.index, inner) for store in stores)
        if covered and array not in effects.reads:
            return True
        names = {key for store in stores for part in store.index for key in names_of(part)}
        if effects.is_fixed or array in effects.reads | effects.made or names & effects.changed:
            return False
    return False


def _covers(index: Sequence[Expr], other: Sequence[Expr], inner: set[str]) -> bool:
    """Whether the second index lies in the first one, which is known outside of the loops with inner variables."""
    whole = (isinstance(part, ast.Slice) and part.lower is part.upper is None for part in index)
    return len(index) == len(other) and all(
        is_all or (same(one, two) and not names_of(two) & inner)
        for is_all, one, two in zip(whole, index, other, strict=True)
    )


def _is_there(block: Sequence[Stmt], position: int) -> bool:
    """Whether a statement stores what was read from the same place before, and is still there."""
    statement = block[position]
    if not isinstance(statement, Store) or statement.add:
        return False
    target = load(statement.array, statement.index)
    for earlier in reversed(block[:position]):
        saved: Expr | None = None
        if isinstance(earlier, Assign):
            saved = name(earlier.name)
        elif isinstance(earlier, Store) and not earlier.add:
            saved = load(earlier.array, earlier.index)
        if saved is not None and same(saved, statement.value):
            return same(earlier.value, target)  # type: ignore[union-attr]
        effects = Effects([earlier])
        if effects.is_fixed or effects.changed & (names_of(target) | names_of(statement.value)):
            return False
    return False
