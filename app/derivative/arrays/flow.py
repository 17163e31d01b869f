"""Which statements a result depends on, and which numbers a block reads before it assigns them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.derivative.arrays.core import (
    Alloc,
    Assign,
    Break,
    Copied,
    For,
    Forget,
    Guard,
    If,
    Stmt,
    Store,
    While,
    blocks_of,
    is_whole,
    mapped,
    names_of,
    parts_of,
    shapes_of,
)

Reaching = dict[str, frozenset[int]]


class Flow:
    """Which definitions reach which uses."""

    def __init__(self, block: Sequence[Stmt], results: Sequence[str]):
        self.statements: dict[int, Stmt] = {}
        self.parents: dict[int, Stmt] = {}
        self.uses: dict[int, Reaching] = {}
        self._makers: dict[int, set[int]] = {}
        """For each statement, where the arrays are made whose shapes it needs."""
        self._arrays: set[str] = set()
        self._summaries: dict[int, tuple[Reaching, set[str]]] = {}
        self._number(block, None)
        state: Reaching = {}
        self._visit(block, state)
        self.roots = [d for key in results for d in state.get(key, ())]

    def _number(self, block: Sequence[Stmt], parent: Stmt | None) -> None:
        for statement in block:
            self.statements[id(statement)] = statement
            if parent is not None:
                self.parents[id(statement)] = parent
            if isinstance(statement, (Alloc, Copied)):
                self._arrays.add(statement.name)
            for inner in blocks_of(statement):
                self._number(inner, statement)

    def _summary(self, block: Sequence[Stmt]) -> tuple[Reaching, set[str]]:
        """The definitions that reach the end of a block, and the names of which no earlier ones do."""
        key = id(block)
        if key in self._summaries:
            return self._summaries[key]
        reached: Reaching = {}
        killed: set[str] = set()
        for statement in block:
            if isinstance(statement, Forget) and statement.name in self._arrays:
                reached[statement.name] = self._makers_of(statement.name, reached) | {id(statement)}
            elif isinstance(statement, (Assign, Alloc, Copied, Forget)):
                reached[statement.name] = frozenset({id(statement)})
                killed.add(statement.name)
            elif isinstance(statement, Store):
                reached[statement.array] = self._left(statement, reached) | {id(statement)}
            elif isinstance(statement, If):
                (one, dead), (other, gone) = self._summary(statement.body), self._summary(statement.orelse)
                for text in one.keys() | other.keys():
                    before = reached.get(text, frozenset())
                    first = one.get(text, frozenset()) | (frozenset() if text in dead else before)
                    second = other.get(text, frozenset()) | (frozenset() if text in gone else before)
                    reached[text] = first | second
                killed |= dead & gone
            elif isinstance(statement, (For, While)):
                for text, definitions in self._summary(statement.body)[0].items():
                    reached[text] = reached.get(text, frozenset()) | definitions
        self._summaries[key] = reached, killed
        return reached, killed

    def _left(self, store: Store, state: Reaching) -> frozenset[int]:
        """The definitions of an array that still count after a store: of one that is stored whole, only its making."""
        if store.add or not is_whole(store.index):
            return state.get(store.array, frozenset())
        return self._makers_of(store.array, state)

    def _makers_of(self, array: str, state: Reaching) -> frozenset[int]:
        """Where an array is made, without what is stored into it."""
        definitions = state.get(array, frozenset())
        return frozenset(d for d in definitions if isinstance(self.statements[d], (Alloc, Copied)))

    def _visit(self, block: Sequence[Stmt], state: Reaching) -> None:
        for statement in block:
            if isinstance(statement, While):
                _merge(state, self._summary(statement.body)[0])
            self.uses[id(statement)] = {text: state.get(text, frozenset()) for text in reads_of(statement)}
            self._makers[id(statement)] = {d for text in _shaped(statement) for d in self._makers_of(text, state)}
            if isinstance(statement, Forget):
                state[statement.name] = self._makers_of(statement.name, state) | {id(statement)}
            elif isinstance(statement, (Assign, Alloc, Copied)):
                state[statement.name] = frozenset({id(statement)})
            elif isinstance(statement, Store):
                state[statement.array] = self._left(statement, state) | {id(statement)}
            elif isinstance(statement, If):
                other = dict(state)
                self._visit(statement.body, state)
                self._visit(statement.orelse, other)
                _merge(state, other)
            elif isinstance(statement, (For, While)):
                inside = dict(state)
                _merge(inside, self._summary(statement.body)[0])
                if isinstance(statement, For):
                    inside[statement.var] = frozenset({id(statement)})
                self._visit(statement.body, inside)
                if isinstance(statement, For):
                    inside.pop(statement.var, None)
                _merge(state, inside)

    def users(self) -> dict[int, list[int]]:
        """For each definition, the statements that it reaches and that use it."""
        users: dict[int, list[int]] = {}
        for statement, reaching in self.uses.items():
            for definitions in reaching.values():
                for definition in definitions:
                    users.setdefault(definition, []).append(statement)
        return users

    def needed(self) -> set[int]:
        """The statements that the results depend on."""
        marked: set[int] = set()
        pending = [*self.roots, *(key for key, s in self.statements.items() if isinstance(s, Guard))]
        while pending:
            key = pending.pop()
            if key in marked:
                continue
            marked.add(key)
            statement = self.statements[key]
            for definitions in self.uses[key].values():
                pending += definitions
            pending += self._makers[key]
            if key in self.parents:
                pending.append(id(self.parents[key]))
            if isinstance(statement, (For, While)):
                pending += [id(each) for each in _breaks(statement.body)]
        return marked


def _shaped(statement: Stmt) -> set[str]:
    """The arrays whose shapes a statement needs."""
    result = {text for part in parts_of(statement) for text in shapes_of(part)}
    return (
        result
        | ({statement.array} if isinstance(statement, Store) else set())
        | ({statement.source} if isinstance(statement, Copied) else set())
    )


def reads_of(statement: Stmt) -> set[str]:
    """The numbers and arrays that a statement itself reads."""
    result = {text for part in parts_of(statement) for text in names_of(part)}
    if isinstance(statement, Copied) and statement.function == "copy":
        result.add(statement.source)
    return result


def _merge(state: Reaching, other: Reaching) -> None:
    for text, definitions in other.items():
        before = state.get(text, frozenset())
        if before is not definitions:  # most are the same object
            state[text] = before | definitions


def _breaks(body: Sequence[Stmt]) -> list[Stmt]:
    result: list[Stmt] = []
    for statement in body:
        if isinstance(statement, Break):
            result.append(statement)
        elif isinstance(statement, If):
            result += _breaks(statement.body) + _breaks(statement.orelse)
    return result


def without_dead(block: list[Stmt], results: Sequence[str]) -> list[Stmt]:
    """The statements that the results depend on."""
    needed = Flow(block, results).needed()
    return _only(block, lambda statement: id(statement) in needed)


def _only(block: Sequence[Stmt], keep: Callable[[Stmt], bool]) -> list[Stmt]:
    result: list[Stmt] = []
    for statement in block:
        if keep(statement):
            inner = blocks_of(statement)
            result.append(mapped(statement, [_only(b, keep) for b in inner]) if inner else statement)
    return result


def exposed(block: Sequence[Stmt], also: frozenset[str] = frozenset()) -> set[str]:
    """The numbers that a block may read before it assigns them."""
    result: set[str] = set(also)
    _expose(block, set(), result)
    return result


def _expose(block: Sequence[Stmt], assigned: set[str], result: set[str]) -> set[str]:
    """Adds to the result; gives what is surely assigned after the block."""
    assigned = set(assigned)
    for statement in block:
        for part in parts_of(statement):
            result |= names_of(part) - assigned
        if isinstance(statement, (Assign, Forget)):
            assigned.add(statement.name)
        elif isinstance(statement, If):
            yes, no = (_expose(part, assigned, result) for part in (statement.body, statement.orelse))
            assigned = yes & no
        else:
            inside = assigned | ({statement.var} if isinstance(statement, For) else set())
            for part_block in blocks_of(statement):
                _expose(part_block, inside, result)
    return assigned
