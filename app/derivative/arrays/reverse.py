"""The reverse mode on the small language.

A loop runs its iterations again in reverse order: each first gets back the numbers that it found (they are recorded at
its start), runs again, and is then gone through backwards. A number or an element that is overwritten is put back
before anything that read its former value is gone through. Whatever turns out not to be needed is removed afterwards.

An array is kept without any record if nothing that the reverse reads of it is ever overwritten. It is made again if
each iteration of a loop uses a part of its own that was empty before. Otherwise iterations record what they overwrite.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.derivative.arrays.core import (
    Alloc,
    Assign,
    Break,
    Copied,
    Expr,
    For,
    Forget,
    Function,
    Guard,
    If,
    Stmt,
    Store,
    Variable,
    While,
    allocated_in,
    assigned_in,
    binary,
    blocks_of,
    call,
    has_break,
    load,
    loads_of,
    mapped,
    minus,
    names_of,
    parts_of,
    plus,
    same,
    shape_of,
    stored_in,
    walk,
)
from app.derivative.arrays.dependence import Access
from app.derivative.arrays.flow import exposed
from app.derivative.arrays.pushing import Pushing
from app.derivative.terms import name, number


@dataclass
class Context:
    """What is known where a block is derived."""

    intact: frozenset[str] = frozenset()
    """Arrays of which nothing that is read is overwritten inside."""
    omitted: frozenset[str] = frozenset()
    """Arrays that already have their values, so that nothing is stored again."""
    loops: tuple[For, ...] = ()
    earlier: list[Access] = field(default_factory=list)
    """What the reverse of statements before reads."""


class Reverse:
    """Derives one function."""

    def __init__(self, function: Function, all_names: set[str], user_names: set[str]):
        self.user_names = set(user_names)
        """The names that the user wrote."""
        self.pushing = Pushing(function, all_names)
        self.function = function = self.pushing.function
        self.variables = function.variables
        self.dependence = self.pushing.dependence
        self.active = self.pushing.active
        self.stores = [s for s in walk(function.body) if isinstance(s, Store)]
        self.allocs = {s.name: s for s in walk(function.body) if isinstance(s, (Alloc, Copied))}
        self.homes = {key: self.dependence.place(s).loops for key, s in self.allocs.items()}
        """For each array the loops of which every iteration has one of its own."""
        self.around: dict[int, list[Stmt]] = {}
        """The statements around each statement."""
        self._find_around(function.body, [])
        self.reads: dict[str, list[Access]] = {}
        self.first_read: dict[str, int] = {}
        self._uses = Counter(key for s in walk(function.body) for key in _mentioned(s))
        self.recomputed: set[str] = set()
        """Arrays that are made again, so that the loop that makes them runs only once."""
        self.silent: set[int] = set()
        """Stores of values that nothing reads later: only their gradients are gone through."""
        self._find_silent()
        self.intact = self._choose_intact()
        self.has_integers = False
        """Whether integers are recorded, so that a setting that is one has to stay one."""

    # What the reverse reads

    def _find_around(self, block: Sequence[Stmt], around: list[Stmt]) -> None:
        for statement in block:
            self.around[id(statement)] = around
            for inner in blocks_of(statement):
                self._find_around(inner, [*around, statement])

    def _find_reads(self, intact: set[str], level: tuple[For, ...] | None = None) -> None:
        """Find what is read, if the stores into these arrays are not run again.

        With `level`, only what the reverse of an iteration of these loops reads.
        """
        self.reads, self.first_read = {}, {}
        assigns: dict[str, list[Assign]] = {}
        for statement in walk(self.function.body):
            if isinstance(statement, Assign):
                assigns.setdefault(statement.name, []).append(statement)
        pending: list[tuple[Expr, Stmt, bool]] = []
        visited: set[Any] = set()

        def add_around(statement: Stmt) -> None:
            for each in self.around[id(statement)]:
                if each not in visited:
                    visited.add(each)
                    pending.extend((part, each, False) for part in parts_of(each))
                    for inner in walk([each]) if isinstance(each, (For, While)) else ():
                        if isinstance(inner, Break):
                            add_around(inner)

        for statement in walk(self.function.body):
            counted = self.dependence.place(statement).counted
            if isinstance(statement, (Assign, Store)) and self.pushing.is_active(statement) and not counted:
                pending += [(part, statement, True) for part in self.pushing.needs(statement)]
                add_around(statement)
            elif isinstance(statement, (If, For, While, Guard)) and level is None:
                pending += [(part, statement, False) for part in parts_of(statement)]
        while pending:
            part, statement, pushed = pending.pop()
            place = self.dependence.place(statement)
            for array, index in loads_of(part):
                after = pushed and isinstance(statement, Store) and statement.array == array
                after = after and all(same(a, b) for a, b in zip(statement.index, index, strict=False))  # type: ignore[union-attr]
                self.reads.setdefault(array, []).append(Access(array, index, place, after, pushed=pushed))
            for key in names_of(part):
                own = pushed and isinstance(statement, Assign) and statement.name == key
                order = place.order + (1 if own else 0)
                self.first_read[key] = min(order, self.first_read.get(key, order))
                again = self._runs_again(statement, level) if level is not None else None
                if (key, id(again)) in visited:
                    continue
                visited.add((key, id(again)))
                for each in assigns.get(key, []):
                    if level is not None and (again is None or self._runs_again(each, level) is not again):
                        continue
                    pending.append((each.value, each, False))
                    add_around(each)
                if key in self.variables and self.variables[key].rank:
                    if key in intact and {*map(id, self.homes[key])} <= {*map(id, level or ())}:
                        continue  # otherwise it is made again with each iteration
                    pending += self._whole(key)
                    for store in self.stores:
                        if store.array == key:
                            add_around(store)

    def _runs_again(self, statement: Stmt, level: tuple[For, ...]) -> For | Function | None:
        """The loop with which the reverse of an iteration of some loops runs a statement again, to go through it.

        The function, if the statement is outside of these loops.
        """
        loops = self.dependence.place(statement).loops
        if loops[: len(level)] != level:
            return self.function
        inner = loops[len(level)] if len(loops) > len(level) else None
        return inner if inner is not None and self._is_active(inner) else None

    def _whole(self, key: str) -> list[tuple[Expr, Stmt, bool]]:
        """An array is read: what is stored into it is needed."""
        stores = [s for s in self.stores if s.array == key and id(s) not in self.silent]
        result: list[tuple[Expr, Stmt, bool]] = [(each, store, False) for store in stores for each in parts_of(store)]
        alloc = self.allocs.get(key)
        if isinstance(alloc, Copied) and alloc.function == "copy":
            whole = [ast.Slice() for _ in range(self.variables[key].rank)]
            result.append((load(alloc.source, whole), alloc, False))
        return result

    def _lost(self, arrays: set[str], intact: set[str]) -> set[str]:
        """The arrays of which something that the reverse reads is overwritten, if some are not stored again."""
        result: set[str] = set()
        for level in {self.homes[array] for array in arrays}:
            self._find_reads(intact, level)
            result |= {a for a in arrays if self.homes[a] == level and not self._is_intact(a, level)}
        return result

    def writes(self, array: str, inside: Stmt | None = None) -> list[Access]:
        """The stores into an array that run."""
        stores = self.stores if inside is None else [s for s in walk([inside]) if isinstance(s, Store)]
        stores = [s for s in stores if s.array == array and id(s) not in self.silent]
        return [Access(array, s.index, self.dependence.place(s), is_write=True) for s in stores]

    def _is_intact(self, array: str, fixed: Sequence[For]) -> bool:
        """Whether nothing that the reverse reads of an array is overwritten, in one iteration of the fixed loops."""
        if array in self.counted:
            return False
        reads, writes = self.reads.get(array, []), self.writes(array)
        return not any(self.dependence.touches_later(r, w, fixed) for r in reads for w in writes)

    def _find_silent(self) -> None:
        """Find the stores that need not run, as the reverse reads no element after it got its value there."""
        self._find_reads(set())
        while True:
            silent = {id(s) for s in self.stores if id(s) not in self.silent and not self._is_read_later(s)}
            if not silent:
                return
            self.silent |= silent
            self._find_reads(set())

    def _is_read_later(self, store: Store) -> bool:
        place = self.dependence.place(store)
        write = Access(store.array, store.index, place, is_write=True)
        reads = self.reads.get(store.array, [])
        return place.counted or any(self.dependence.touches_later(write, r, self.homes[store.array]) for r in reads)

    def _choose_intact(self) -> set[str]:
        self.counted = stored_in([s for s in walk(self.function.body) if isinstance(s, While)])
        intact = {s.array for s in self.stores}
        while lost := self._lost(intact, intact):
            intact -= lost
        self._find_reads(intact)  # of the whole function, not of the last loops that were asked about
        for loop in walk(self.function.body):
            if isinstance(loop, For):
                intact = self._without_sweep(loop, intact)
        self._find_reads(intact)
        return intact

    def _without_sweep(self, loop: For, intact: set[str]) -> set[str]:
        """The arrays to keep if a loop of independent iterations makes its arrays again, so that it runs only once."""
        around = self.dependence.place(loop).loops
        outside = {a for a in stored_in([loop]) - allocated_in([loop]) if self.homes[a] == around}
        recomputed = {a for a in outside & intact if self.reads.get(a)}
        elsewhere = any(loop not in read.place.loops for a in recomputed for read in self.reads[a])
        if not recomputed or elsewhere or has_break(loop.body):
            return intact
        lost = self._lost(intact - recomputed, intact - recomputed)
        self._find_reads(intact - recomputed)
        carried = {key for key in exposed(loop.body) & assigned_in(loop.body) if key in self.first_read}
        own = all(not self.reads.get(a) or self._is_own(loop, a) for a in stored_in([loop]) - allocated_in([loop]))
        if carried or lost or not own:
            self._find_reads(intact)
            return intact
        self.recomputed |= recomputed
        return intact - recomputed

    def _is_own(self, loop: For, array: str) -> bool:
        """Whether each iteration uses a part of an array of its own, which was empty before."""
        alloc = self.allocs[array]
        if not isinstance(alloc, Alloc) or alloc.kind != "empty":
            return False
        depth = len(self.homes[array])
        for read in self.reads.get(array, []):
            if loop not in read.place.loops:
                continue
            for write in self.writes(array):
                if loop in write.place.loops:
                    common = read.place.loops[depth : read.place.loops.index(loop) + 1]
                    if any(self.dependence.touches_in_other(read, write, each) for each in common):
                        return False
                elif self.dependence.touches_later(write, read, self.homes[array]):
                    return False
        return True

    # Blocks

    def derived(self, block: Sequence[Stmt], context: Context) -> tuple[list[Stmt], list[Stmt]]:
        """The statements of a block to run first, and those that go through it backwards."""
        forward: list[Stmt] = []
        backward: list[Stmt] = []
        zeros: list[Stmt] = []
        earlier = list(context.earlier)
        for statement in block:
            inside = Context(context.intact, context.omitted, context.loops, earlier)
            first, second = self._statement(statement, inside)
            forward += first
            backward = [*second, *backward]
            if isinstance(statement, (Alloc, Copied)) and statement.name in self.active:
                zeros += self.pushing.gradient_of(statement)
            earlier = [*earlier, *self._reads_in(statement)]
        return forward, [*zeros, *backward]

    def _reads_in(self, statement: Stmt) -> list[Access]:
        """What the reverse of a statement reads: a loop runs again, a branch is only gone through."""
        if isinstance(statement, For):
            inside = [*walk([statement])] if self._is_active(statement) else []
        else:
            inside = [statement]
        orders = {self.dependence.place(s).order for s in inside}
        again = isinstance(statement, (For, If))
        own = [r for reads in self.reads.values() for r in reads if r.place.order in orders and (again or r.pushed)]
        parts = blocks_of(statement) if isinstance(statement, If) else []
        return [*own, *(read for block in parts for each in block for read in self._reads_in(each))]

    def _is_active(self, loop: For) -> bool:
        return any(isinstance(s, (Assign, Store)) and self.pushing.is_active(s) for s in walk(loop.body))

    def _statement(self, statement: Stmt, context: Context) -> tuple[list[Stmt], list[Stmt]]:
        if isinstance(statement, Assign):
            return self._assign(statement)
        if isinstance(statement, Store):
            return self._store(statement, context)
        if isinstance(statement, If):
            return self._if(statement, context)
        if isinstance(statement, For):
            return self._for(statement, context)
        if isinstance(statement, While):
            return self._while(statement, context)
        if isinstance(statement, Break):
            return [], []
        if isinstance(statement, Copied):
            return [mapped(statement)], self.pushing.of_copy(statement)
        if isinstance(statement, Guard) and self.dependence.holds(statement.test, self.dependence.place(statement)):
            return [], []
        return [mapped(statement)], []

    def new_variable(self, wish: str, like: Variable) -> str:
        text = self.pushing.fresh(wish)
        self.variables[text] = like
        return text

    def _must_return(self, key: str, statement: Stmt) -> bool:
        """Whether the value of a number before a statement is needed by what comes before."""
        return self.first_read.get(key, 1 << 60) <= self.dependence.place(statement).order

    def _assign(self, statement: Assign) -> tuple[list[Stmt], list[Stmt]]:
        key = statement.name
        forward: list[Stmt] = [mapped(statement)]
        restored: list[Stmt] = []
        if self._must_return(key, statement):
            old = self.new_variable(f"{key}_old", Variable(0, self.variables[key].kind))
            forward.insert(0, Assign(old, name(key), statement.line))
            restored = [Assign(key, name(old), statement.line)]
        return forward, self.pushing.of_assign(statement, restored)

    def _store(self, statement: Store, context: Context) -> tuple[list[Stmt], list[Stmt]]:
        array = statement.array
        forward: list[Stmt] = [] if array in context.omitted or id(statement) in self.silent else [mapped(statement)]
        restored: list[Stmt] = []
        if forward and array not in context.intact | context.omitted and self._must_undo(array, statement, context):
            if any(isinstance(part, ast.Slice) for part in statement.index):
                return self._undone_whole(statement, forward)
            old = self.new_variable(f"{array}_old", Variable(0, self.variables[array].kind))
            forward.insert(0, Assign(old, load(array, statement.index), statement.line))
            restored = [Store(array, statement.index, name(old), False, statement.line)]
        return forward, [*self.pushing.of_store(statement, self._is_final(statement)), *restored]

    def _undone_whole(self, statement: Store, forward: list[Stmt]) -> tuple[list[Stmt], list[Stmt]]:
        """A store into a section, after which its array is put back."""
        array = statement.array
        old = self.new_variable(f"{array}_old", self.variables[array])
        whole = tuple(ast.Slice() for _ in range(self.variables[array].rank))
        restored = Store(array, whole, name(old), False, statement.line)
        pushed = self.pushing.of_store(statement, self._is_final(statement))
        return [Copied(old, "copy", array, statement.line), *forward], [*pushed, restored]

    def _must_undo(self, array: str, statement: Stmt, context: Context) -> bool:
        """Whether the reverse of statements before reads what a statement overwrites."""
        reads = [read for read in context.earlier if read.array == array]
        writes = self.writes(array, statement)
        return any(self.dependence.touches_later(r, w, context.loops) for r in reads for w in writes)

    def _is_final(self, statement: Store) -> bool:
        """Whether the gradient of an element need not be set to zero, as nothing was stored there before."""
        alloc = self.allocs[statement.array]
        if isinstance(alloc, Copied) and alloc.function == "copy":
            return False
        home = self.homes[statement.array]
        write = Access(statement.array, statement.index, self.dependence.place(statement), is_write=True)
        for store in self.stores:
            if store.array != statement.array:
                continue
            if store is not statement:
                other = Access(store.array, store.index, self.dependence.place(store), is_write=True)
                if self.dependence.touches_later(other, write, home):
                    return False
            else:
                for loop in write.place.loops[len(home) :]:
                    if self.dependence.touches_in_other(write, write, loop):
                        return False
        return True

    def _if(self, statement: If, context: Context) -> tuple[list[Stmt], list[Stmt]]:
        (yes, yes_back), (no, no_back) = (
            self.derived(part, Context(context.intact, context.omitted, context.loops, context.earlier))
            for part in (statement.body, statement.orelse)
        )
        test = statement.test
        forward: list[Stmt] = []
        inside = [*statement.body, *statement.orelse]
        if names_of(test) & (assigned_in(inside) | stored_in(inside) | allocated_in(inside)):
            condition = self.new_variable("taken", Variable(0, "bool"))
            forward.append(Assign(condition, test, statement.line))
            test = name(condition)
        forward += [Forget(key) for part in (statement.body, statement.orelse) for key in self._only_in(part)]
        forward.append(If(test, yes, no, statement.line))
        return forward, [If(test, yes_back, no_back, statement.line)] if yes_back or no_back else []

    def _only_in(self, branch: Sequence[Stmt]) -> list[str]:
        """Numbers that belong to one branch, so that its reverse reads what this run of the branch has assigned."""
        inside = [*walk(branch)]
        own = assigned_in(branch) - exposed(branch)
        return sorted(key for key in own if self._uses[key] == sum(key in _mentioned(s) for s in inside))

    def _while(self, statement: While, context: Context) -> tuple[list[Stmt], list[Stmt]]:
        """A loop that only counts. What it overwrites is put back by the statements that follow it."""
        forward, backward = self._returned(statement, context, stored_in([statement]) - allocated_in([statement]))
        return [*forward, mapped(statement)], backward

    def _returned(self, statement: Stmt, context: Context, arrays: Iterable[str]) -> tuple[list[Stmt], list[Stmt]]:
        """Statements that save what a statement overwrites, and that put it back."""
        forward: list[Stmt] = []
        backward: list[Stmt] = []
        for key in sorted(assigned_in([statement])):
            if self._must_return(key, statement):
                old = self.new_variable(f"{key}_old", Variable(0, self.variables[key].kind))
                forward.append(Assign(old, name(key), statement.line))
                backward.append(Assign(key, name(old), statement.line))
        for array in sorted(arrays):
            if array not in context.intact | context.omitted and self._must_undo(array, statement, context):
                old = self.new_variable(f"{array}_old", self.variables[array])
                forward.append(Copied(old, "copy", array, statement.line))
                whole = tuple(ast.Slice() for _ in range(self.variables[array].rank))
                backward.append(Store(array, whole, name(old), False, statement.line))
        return forward, backward

    # Loops

    def _for(self, loop: For, context: Context) -> tuple[list[Stmt], list[Stmt]]:
        arrays = stored_in(loop.body) - allocated_in(loop.body)
        if not self._is_active(loop):
            forward, backward = self._returned(loop, context, arrays)
            return [*forward, self._plain(loop, context.omitted)], backward
        forward, backward = self._returned(loop, context, [])
        inner = (*context.loops, loop)
        intact = set(context.intact) | {a for a in self.intact if self.homes[a] == inner}
        records: list[Stmt] = []
        stored: list[Stmt] = []
        restored: list[Stmt] = []
        again: list[Stmt] = []
        for key in sorted(exposed(loop.body) & assigned_in(loop.body)):
            self._record_number(key, loop, records, stored, restored)
        omitted = set(context.omitted) | (arrays & (context.intact | context.omitted))
        for array in sorted(arrays - omitted):
            undo = self._must_undo(array, loop, context)
            reads = [r for r in self.reads.get(array, []) if loop in r.place.loops]
            writes = self.writes(array, loop)
            if not writes:  # nothing is stored again
                omitted.add(array)
                continue
            lost = array in self.counted or any(
                self.dependence.touches_later(r, w, context.loops) for r in reads for w in writes
            )
            if not lost and array not in self.recomputed:  # what is read is still there, as what comes after was undone
                omitted.add(array)
                if undo:
                    self._record_section(array, loop, records, stored, [], again)
                continue
            is_recomputed = array in self.counted or any(
                self.dependence.touches_later(w, r, inner) for r in reads for w in writes
            )
            if not is_recomputed:  # what is read is what the iteration began with
                omitted.add(array)
                if undo or reads:
                    self._record_section(array, loop, records, stored, restored, [])
                continue
            if self._is_intact(array, inner):
                intact.add(array)
            if undo or not self._is_own(loop, array):
                self._record_section(array, loop, records, stored, restored, again)
            else:
                restored.append(Forget(array))
        body, back = self.derived(loop.body, Context(frozenset(intact), frozenset(omitted), inner, []))
        first: list[Stmt] = [*stored, *(self._plain(s, context.omitted) for s in loop.body)]
        if has_break(loop.body):
            last = self.new_variable("last", Variable(0, "int"))
            forward.append(Assign(last, minus(loop.start, loop.step), loop.line))
            first.insert(0, Assign(last, name(loop.var), loop.line))
            end: Expr = name(last)
        else:
            end = _last(loop)
        sign = 1 if loop.step > 0 else -1
        forward += [*records, For(loop.var, loop.start, loop.stop, loop.step, first, loop.line)]
        inside = [*restored, *body, *back, *again]
        backward.insert(0, For(loop.var, end, minus(loop.start, sign), -loop.step, inside, loop.line, True))
        return forward, backward

    def _plain(self, statement: Stmt, omitted: frozenset[str]) -> Stmt:
        """A statement as it is, without stores into some arrays."""
        evident = isinstance(statement, Guard) and self.dependence.holds(
            statement.test, self.dependence.place(statement)
        )
        idle = isinstance(statement, Store) and (statement.array in omitted or id(statement) in self.silent)
        if idle or evident:
            return If(number(True), [], [])
        blocks = [[self._plain(s, omitted) for s in block] for block in blocks_of(statement)]
        return mapped(statement, blocks)

    def _position(self, loop: For) -> tuple[Expr, Expr]:
        """Where the record of an iteration is, and how many there are."""
        place = self.dependence.place(loop.body[0])
        variable = name(loop.var)
        first, last = (loop.start, loop.stop) if loop.step > 0 else (plus(loop.stop, 1), plus(loop.start, 1))
        if self.dependence.is_in_order(variable, place):
            size: Expr = last
            where: Expr = variable
        else:
            size, where = minus(last, first), minus(variable, first)
        if any(isinstance(part, (ast.Sub, ast.USub)) for part in ast.walk(size)):
            size = call("max", size, number(0))  # the loop may be one without an iteration, whatever tests surround it
        return where, size

    def _record_number(
        self, key: str, loop: For, records: list[Stmt], stored: list[Stmt], restored: list[Stmt]
    ) -> None:
        kind = self.variables[key].kind
        self.has_integers |= kind != "float"
        where, size = self._position(loop)
        dtype = None if kind == "float" else ast.Attribute(name("np"), _TYPES[kind], ast.Load())
        text = self.new_variable(f"{key}_at", Variable(1, kind, dtype))
        records.append(Alloc(text, "empty", (size,), dtype, None, loop.line))
        stored.append(Store(text, (where,), name(key), False, loop.line))
        restored.append(Assign(key, load(text, (where,)), loop.line))

    def _record_section(
        self,
        array: str,
        loop: For,
        records: list[Stmt],
        stored: list[Stmt],
        restored: list[Stmt],
        again: list[Stmt],
    ) -> None:
        """Record the part of an array that an iteration overwrites."""
        where, size = self._position(loop)
        section = self._section(array, loop)
        sizes = [s for s in (self._size(part, array, axis) for axis, part in enumerate(section)) if s is not None]
        variable = self.variables[array]
        text = self.new_variable(f"{array}_at", Variable(1 + len(sizes), variable.kind, variable.dtype))
        records.append(Alloc(text, "empty", (size, *sizes), variable.dtype, None, loop.line))
        target = (where, *(ast.Slice() for _ in sizes))
        stored.append(Store(text, target, load(array, section), False, loop.line))
        back = Store(array, tuple(section), load(text, target), False, loop.line)
        restored.append(back)
        again.append(mapped(back))

    def _size(self, part: Expr, array: str, axis: int) -> Expr | None:
        if not isinstance(part, ast.Slice):
            return None
        alloc = self.allocs[array]
        while isinstance(alloc, Copied) and alloc.source in self.allocs:
            alloc = self.allocs[alloc.source]
        return shape_of(alloc.source, axis) if isinstance(alloc, Copied) else alloc.shape[axis]

    def _section(self, array: str, loop: For) -> list[Expr]:
        """The part of an array that an iteration of a loop may overwrite, as an index."""
        inner = {s.var for s in walk(loop.body) if isinstance(s, For)}
        changing = inner | assigned_in(loop.body)
        writes = self.writes(array, loop)
        section: list[Expr] = []
        for axis in range(self.variables[array].rank):
            parts = [write.index[axis] for write in writes]
            steady = all(not names_of(p) & changing and not loads_of(p) for p in parts)
            section.append(parts[0] if steady and all(same(part, parts[0]) for part in parts) else ast.Slice())
        return section


def _mentioned(statement: Stmt) -> set[str]:
    """The numbers that a statement itself reads or assigns."""
    assigned = {statement.name} if isinstance(statement, Assign) else set()
    return {key for part in parts_of(statement) for key in names_of(part)} | assigned


_TYPES = {"int": "int64", "bool": "bool_"}


def _last(loop: For) -> Expr:
    """The last value of the variable of a loop."""
    if abs(loop.step) == 1:
        return minus(loop.stop, loop.step)
    if loop.step > 0:
        steps = binary(minus(minus(loop.stop, loop.start), 1), ast.FloorDiv(), number(loop.step))
        return plus(binary(steps, ast.Mult(), number(loop.step)), loop.start)
    steps = binary(minus(minus(loop.start, loop.stop), 1), ast.FloorDiv(), number(-loop.step))
    return minus(loop.start, binary(steps, ast.Mult(), number(-loop.step)))
