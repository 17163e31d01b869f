"""What statements read and change, and branches of one test, which are joined.

Statements change places only if neither changes what the other reads; two that only add to one array, or to one
number, may change places, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.derivative.arrays.core import (
    Alloc,
    Assign,
    Copied,
    For,
    Forget,
    Guard,
    If,
    Stmt,
    Store,
    added_to,
    blocks_of,
    has_break,
    mapped,
    names_of,
    opposite,
    parts_of,
    same,
    shapes_of,
    walk,
)


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


def with_joined_branches(block: Sequence[Stmt]) -> list[Stmt]:
    """The block with branches of one test, or of its opposite, joined."""
    result = [mapped(s, [with_joined_branches(b) for b in blocks_of(s)]) if blocks_of(s) else s for s in block]
    position = 0
    while position < len(result):
        later = range(position + 1, len(result)) if isinstance(result[position], If) else ()
        position = next((p for q in later if (p := _join(result, position, q)) is not None), position + 1)
    return result


def _join(block: list[Stmt], position: int, other: int) -> int | None:
    """Join two branches of a block; gives the place of the result, or None if they cannot be joined."""
    first, second = block[position], block[other]
    if not isinstance(first, If) or not isinstance(second, If):
        return None
    if same(opposite(first.test), second.test):
        first = If(second.test, first.orelse, first.body, first.line)
    if not same(first.test, second.test):
        return None
    own, following = Effects([first]), Effects([second])
    if own.is_fixed or following.is_fixed or own.changed & names_of(first.test):
        return None
    between = [(statement, Effects([statement])) for statement in block[position + 1 : other]]
    parted = _parted(between, own, following, False) or _parted(between, own, following, True)
    if parted is None:
        return None
    before, after = parted
    yes, no = (with_joined_branches([*one, *two]) for one, two in zip(blocks_of(first), blocks_of(second), strict=True))
    block[position : other + 1] = [*before, If(first.test, yes, no, first.line), *after]
    return position + len(before)


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
