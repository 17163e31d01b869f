"""Removes what nobody needs from a derived function, and writes the rest as a person would."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Sequence

from app.custom.derivative.arrays.core import (
    Alloc,
    Assign,
    Break,
    Copied,
    Expr,
    For,
    Forget,
    Guard,
    If,
    Stmt,
    Store,
    While,
    allocated_in,
    assigned_in,
    binary,
    blocks_of,
    element_of,
    has_break,
    load,
    loads_of,
    mapped,
    names_of,
    parts_of,
    replaced,
    same,
    shape_of,
    shapes_of,
    stored_in,
    walk,
)
from app.custom.derivative.terms import name, negative, number, number_in

Reaching = dict[str, frozenset[int]]


class Flow:
    """Which definitions reach which uses."""

    def __init__(self, block: Sequence[Stmt], results: Sequence[str]):
        self.statements: dict[int, Stmt] = {}
        self.parents: dict[int, Stmt] = {}
        self.uses: dict[int, Reaching] = {}
        self.allocs: dict[str, int] = {}
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
                self.allocs[statement.name] = id(statement)
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
            if isinstance(statement, (Assign, Alloc, Copied, Forget)):
                reached[statement.name] = frozenset({id(statement)})
                killed.add(statement.name)
            elif isinstance(statement, Store):
                reached[statement.array] = reached.get(statement.array, frozenset()) | {id(statement)}
            elif isinstance(statement, If):
                (one, dead), (other, gone) = self._summary(statement.body), self._summary(statement.orelse)
                for text in one.keys() | other.keys():
                    before = reached.get(text, frozenset())
                    first = one.get(text, frozenset()) | (frozenset() if text in dead else before)
                    second = other.get(text, frozenset()) | (frozenset() if text in gone else before)
                    reached[text] = first | second
                killed |= dead & gone
            elif isinstance(statement, (For, While)):
                for text, found in self._summary(statement.body)[0].items():
                    reached[text] = reached.get(text, frozenset()) | found
        self._summaries[key] = reached, killed
        return reached, killed

    def _visit(self, block: Sequence[Stmt], state: Reaching) -> None:
        for statement in block:
            if isinstance(statement, While):
                _merge(state, self._summary(statement.body)[0])
            self.uses[id(statement)] = {text: state.get(text, frozenset()) for text in used(statement)}
            if isinstance(statement, (Assign, Alloc, Copied, Forget)):
                state[statement.name] = frozenset({id(statement)})
            elif isinstance(statement, Store):
                state[statement.array] = state.get(statement.array, frozenset()) | {id(statement)}
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
            for found in self.uses[key].values():
                pending += found
            for part in parts_of(statement):
                pending += [self.allocs[text] for text in shapes_of(part) if text in self.allocs]
            if isinstance(statement, Store) and statement.array in self.allocs:
                pending.append(self.allocs[statement.array])
            if isinstance(statement, Copied) and statement.source in self.allocs:
                pending.append(self.allocs[statement.source])
            if key in self.parents:
                pending.append(id(self.parents[key]))
            if isinstance(statement, (For, While)):
                pending += [id(each) for each in _breaks(statement.body)]
        return marked


def used(statement: Stmt) -> set[str]:
    """The numbers and arrays that a statement itself reads."""
    result = {text for part in parts_of(statement) for text in names_of(part)}
    if isinstance(statement, Copied) and statement.function == "copy":
        result.add(statement.source)
    return result


def _merge(state: Reaching, other: Reaching) -> None:
    for text, found in other.items():
        state[text] = state.get(text, frozenset()) | found


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


# Zeros


class Zeros:
    """Adds nothing to a gradient that is zero, and sets one to zero where the iteration begins that uses it."""

    def __init__(self, gradients: set[str]):
        self._gradients = gradients
        self._summaries: dict[int, tuple[set[str], set[str]]] = {}

    def _summary(self, block: Sequence[Stmt]) -> tuple[set[str], set[str]]:
        """The gradients that are zero after a block, and those that may not be."""
        key = id(block)
        if key in self._summaries:
            return self._summaries[key]
        zero: set[str] = set()
        other: set[str] = set()
        for statement in block:
            if isinstance(statement, Assign):
                is_zero = number_in(statement.value) == 0
                (zero.add if is_zero else zero.discard)(statement.name)
                (other.discard if is_zero else other.add)(statement.name)
            elif isinstance(statement, If):
                (one, bad), (two, worse) = self._summary(statement.body), self._summary(statement.orelse)
                changed = (bad - one) | (worse - two)
                zero = (zero | (one & two)) - changed
                other = (other - (one & two)) | changed
            elif isinstance(statement, (For, While)):
                inner, bad = self._summary(statement.body)
                zero -= bad - inner
                other |= bad - inner
        self._summaries[key] = zero, other
        return zero, other

    def block(self, block: Sequence[Stmt], zeros: set[str]) -> list[Stmt]:
        """The block, and `zeros` as they are after it."""
        result: list[Stmt] = []
        for statement in block:
            if isinstance(statement, Assign) and statement.name in self._gradients:
                result += self._assign(statement, zeros)
            elif isinstance(statement, If):
                other = set(zeros)
                yes, no = self.block(statement.body, zeros), self.block(statement.orelse, other)
                zeros &= other
                result.append(mapped(statement, [yes, no]))
            elif isinstance(statement, For):
                inner, bad = self._summary(statement.body)
                zeros -= bad - inner
                inside = set(zeros)
                changed = sorted(zeros & assigned_in(statement.body))
                start: list[Stmt] = [Assign(each, number(0.0), statement.line) for each in changed]
                result.append(mapped(statement, [[*start, *self.block(statement.body, inside)]]))
            else:
                result.append(statement)
        return result

    def _assign(self, statement: Assign, zeros: set[str]) -> list[Stmt]:
        key, value = statement.name, statement.value
        if number_in(value) == 0:
            if key in zeros:
                return []
            zeros.add(key)
            return [statement]
        if key not in zeros:
            return [statement]
        zeros.discard(key)
        added = _added(value, key)
        return [statement if added is None else Assign(key, added, statement.line)]


def _added(value: Expr, key: str) -> Expr | None:
    """What is added, if an expression adds something to a number."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return None
    if not isinstance(value.left, ast.Name) or value.left.id != key or key in names_of(value.right):
        return None
    return value.right if isinstance(value.op, ast.Add) else negative(value.right)


# Names that are used once


def inlined(block: list[Stmt], results: Sequence[str], temporary: Callable[[str], bool]) -> list[Stmt]:
    """The block without temporaries that are used once, or that only rename something."""
    for _ in range(12):
        flow = Flow(block, results)
        users: dict[int, list[int]] = {}
        for key, reaching in flow.uses.items():
            for found in reaching.values():
                for each in found:
                    users.setdefault(each, []).append(key)
        rooted = set(flow.roots)
        changed = _Inlining(flow, users, rooted, temporary)
        block = changed.block(block)
        if not changed.done:
            break
        block = without_dead(block, results)
    return block


class _Inlining:
    def __init__(self, flow: Flow, users: dict[int, list[int]], rooted: set[int], temporary: Callable[[str], bool]):
        self._flow, self._users, self._rooted, self._temporary = flow, users, rooted, temporary
        self.done = 0
        self._alive: list[Stmt] = []
        """Statements that are replaced stay alive, since they are known by their identity."""

    def block(self, block: Sequence[Stmt]) -> list[Stmt]:
        result = list(block)
        position = 0
        while position < len(result):
            statement = result[position]
            if isinstance(statement, Assign) and self._temporary(statement.name) and id(statement) not in self._rooted:
                moved = self._moved(statement, result[position + 1 :])
                if moved is not None:
                    result[position:] = moved
                    self.done += 1
                    continue
            position += 1
        return [mapped(s, [self.block(b) for b in blocks_of(s)]) if blocks_of(s) else s for s in result]

    def _moved(self, statement: Assign, rest: list[Stmt]) -> list[Stmt] | None:
        """The statements that follow, with the value in place of the name; None if that may change a result."""
        users = set(self._users.get(id(statement), []))
        key, value = statement.name, statement.value
        only = all(self._flow.uses[u].get(key) == frozenset({id(statement)}) for u in users if u in self._flow.uses)
        if not users or not only or any(u not in self._flow.uses for u in users):
            return None
        atom = isinstance(value, (ast.Name, ast.Constant))
        if not atom and (len(users) > 1 or self._times(key, users) > 1):
            return None
        reads = names_of(value)
        places = {p for p, s in enumerate(rest) for each in walk([s]) if id(each) in users}
        if sum(id(each) in users for s in rest for each in walk([s])) < len(users):
            return None
        last = max(places)
        if not atom and any(isinstance(s, (For, While)) and id(s) not in users for s in [rest[last]]):
            return None
        for place, each in enumerate(rest[: last + 1]):
            changed = assigned_in([each]) | stored_in([each]) | {s.var for s in walk([each]) if isinstance(s, For)}
            changed |= {s.name for s in walk([each]) if isinstance(s, (Alloc, Copied, Forget))}
            simple = place == last and isinstance(each, (Assign, Store))
            if (not simple and reads & changed) or (not simple and key in changed):
                return None
        if (
            len(users) == 1
            and isinstance(rest[last], If)
            and id(rest[last]) not in users
            and _in_loop(rest[last], users)
        ):
            return None
        return [self._replace(s, key, value, users) for s in rest]

    def _times(self, key: str, users: set[int]) -> int:
        count = 0
        for user in users:
            for part in parts_of(self._flow.statements[user]):
                count += sum(isinstance(n, ast.Name) and n.id == key for n in ast.walk(part))
        return count

    def _replace(self, statement: Stmt, key: str, value: Expr, users: set[int]) -> Stmt:
        if not any(id(s) in users for s in walk([statement])):
            return statement
        blocks = [[self._replace(s, key, value, users) for s in b] for b in blocks_of(statement)]
        result = mapped(statement, blocks, {key: value} if id(statement) in users else None)
        old, new = id(statement), id(result)
        self._flow.statements[new] = result
        self._flow.uses[new] = self._flow.uses[old]
        if old in users:
            reaching = {t: f for t, f in self._flow.uses[old].items() if t != key}
            self._flow.uses[new] = reaching
        for found in self._users.values():
            found[:] = [new if u == old else u for u in found]
        if old in self._users:
            self._users[new] = self._users[old]
            for each in self._users[new]:
                self._flow.uses[each] = {
                    t: frozenset(new if d == old else d for d in f) for t, f in self._flow.uses[each].items()
                }
        if old in self._rooted:
            self._rooted.add(new)
        self._alive.append(statement)
        return result


def _in_loop(statement: Stmt, users: set[int]) -> bool:
    return any(isinstance(s, (For, While)) and any(id(e) in users for e in walk(s.body)) for s in walk([statement]))


# Loops


def ahead(block: list[Stmt], results: Sequence[str]) -> list[Stmt]:
    """The block with loops that run forward where the order of their iterations has no effect."""
    flow = Flow(block, results)
    users: dict[int, set[int]] = {}
    for key, reaching in flow.uses.items():
        for found in reaching.values():
            for each in found:
                users.setdefault(each, set()).add(key)
    for each in flow.roots:
        users.setdefault(each, set()).add(0)
    loops = [s for s in walk(block) if isinstance(s, For) and s.step == -1 and s.backward]
    free = {id(loop) for loop in loops if _is_free(loop) and not _lasts(loop, users)}
    return _turned_round(block, free)


def _lasts(loop: For, users: dict[int, set[int]]) -> bool:
    """Whether a number that an iteration of a loop assigns is read after the loop."""
    inside = {id(s) for s in walk(loop.body)}
    assigns = [s for s in walk(loop.body) if isinstance(s, Assign)]
    return any(users.get(id(s), set()) - inside and not _only_adds(loop.body, s.name) for s in assigns)


def _turned_round(block: Sequence[Stmt], free: set[int]) -> list[Stmt]:
    result: list[Stmt] = []
    for statement in block:
        inner = [_turned_round(b, free) for b in blocks_of(statement)]
        if isinstance(statement, For) and id(statement) in free:
            start, stop = _plus_one(statement.stop), _plus_one(statement.start)
            result.append(For(statement.var, start, stop, 1, inner[0], statement.line))
        else:
            result.append(mapped(statement, inner) if inner else statement)
    return result


def _plus_one(node: Expr) -> Expr:
    from app.custom.derivative.arrays.core import plus

    negative_one = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and number_in(node.operand) == 1
    return number(0) if negative_one else plus(node, 1)


def _is_free(loop: For) -> bool:
    """Whether the iterations of a loop may run in any order."""
    from app.custom.derivative.arrays.reader import exposed

    body = loop.body
    if has_break(body) or any(isinstance(s, While) for s in walk(body)):
        return False
    for key in exposed(body) & assigned_in(body):
        if not _only_adds(body, key):
            return False
    first = number_in(_plus_one(loop.stop))
    made = {s.name for s in walk(body) if isinstance(s, (Alloc, Copied))}
    for array in stored_in(body) - made:
        stores = [s for s in walk(body) if isinstance(s, Store) and s.array == array]
        reads = [index for s in walk(body) for part in parts_of(s) for a, index in loads_of(part) if a == array]
        named = any(array in names_of(part) for s in walk(body) for part in parts_of(s)) and not reads
        copied = any(isinstance(s, Copied) and s.source == array and s.function == "copy" for s in walk(body))
        if all(s.add for s in stores) and not reads and not named and not copied:
            continue
        accesses = [*(s.index for s in stores), *reads]
        own = first is not None and first >= 0 and not named and not copied
        if not own or not any(
            all(isinstance(i[axis], ast.Name) and i[axis].id == loop.var for i in accesses)  # type: ignore[attr-defined]
            for axis in range(min(len(i) for i in accesses))
        ):
            return False
    return True


def _only_adds(body: Sequence[Stmt], key: str) -> bool:
    """Whether all that is done with a number is to add to it."""
    for statement in walk(body):
        if isinstance(statement, Assign) and statement.name == key:
            if _added(statement.value, key) is None:
                return False
        elif key in used(statement):
            return False
    return True


def assigned_once(block: list[Stmt]) -> list[Stmt]:
    """The block with elements of gradients assigned instead of added to, where each is added to once."""
    zeros = {s.name for s in block if isinstance(s, Copied) and s.function == "zeros_like"}
    zeros |= {s.name for s in block if isinstance(s, Alloc) and s.kind == "zeros"}
    for array in zeros:
        stores = [s for s in walk(block) if isinstance(s, Store) and s.array == array]
        if len(stores) == 1 and stores[0].add and _is_injective(block, stores[0]):
            stores[0].add = False
    return block


def _is_injective(block: Sequence[Stmt], store: Store) -> bool:
    loops = _loops_around(block, store) or []
    texts = [i.id for i in store.index if isinstance(i, ast.Name)]
    if any(isinstance(i, ast.Slice) for i in store.index) or store.array in names_of(store.value):
        return False
    for loop in loops:
        if not isinstance(loop, For) or loop.var not in texts:
            return False
        low = loop.start if loop.step > 0 else _plus_one(loop.stop)
        if not (isinstance(low, ast.Constant) and isinstance(low.value, int) and low.value >= 0):
            return False
    return True


def _loops_around(block: Sequence[Stmt], wanted: Stmt) -> list[Stmt] | None:
    for statement in block:
        if statement is wanted:
            return []
        for inner in blocks_of(statement):
            found = _loops_around(inner, wanted)
            if found is not None:
                return [statement, *found] if isinstance(statement, (For, While)) else found
    return None


def contracted(block: list[Stmt], results: Sequence[str]) -> list[Stmt]:
    """The block with an array of which each iteration of a loop uses its own row in the size of one row."""
    for made in list(block):
        if not isinstance(made, (Alloc, Copied)) or made.name in results:
            continue
        if isinstance(made, Alloc):
            plain = made.kind == "empty"
        else:  # the copy of something that does not change
            plain = made.function == "copy" and made.source not in stored_in(block) | allocated_in(block)
        users = [s for s in block if s is not made and any(made.name in _mentioned(each) for each in walk([s]))]
        if plain and len(users) == 1 and isinstance(users[0], For):
            _contract(block, made, users[0])
    return block


def _mentioned(statement: Stmt) -> set[str]:
    """The names of arrays that a statement itself refers to."""
    texts = {n.id for part in parts_of(statement) for n in ast.walk(part) if isinstance(n, ast.Name)}
    return texts | {getattr(statement, key, "") for key in ("array", "source")}


def _contract(block: list[Stmt], made: Alloc | Copied, loop: For) -> None:
    array = made.name
    inside = [*walk(loop.body)]
    places = [s.index for s in inside if isinstance(s, Store) and s.array == array]
    loads = [part for s in inside for part in parts_of(s)]
    places += [index for part in loads for text, index in loads_of(part) if text == array]
    bare = sum(isinstance(n, ast.Name) and n.id == array for part in loads for n in ast.walk(part))
    stores = sum(isinstance(s, Store) and s.array == array for s in inside)
    copied = any(isinstance(s, Copied) and s.source == array for s in inside)
    low = number_in(loop.start if loop.step > 0 else _plus_one(loop.stop))
    rebound = any(isinstance(s, For) and s.var == loop.var for s in inside)
    rank = len(places[0])
    if bare != len(places) - stores or copied or rebound or rank < 2 or low is None or low < 0:
        return
    own = [all(isinstance(i[k], ast.Name) and i[k].id == loop.var for i in places) for k in range(rank)]  # type: ignore[attr-defined]
    if True not in own:
        return
    axis = own.index(True)
    rest = [k for k in range(rank) if k != axis]
    if isinstance(made, Alloc):
        smaller = Alloc(array, "empty", tuple(made.shape[k] for k in rest), made.dtype, None, made.line)
        start: list[Stmt] = []
    else:
        dtype = ast.Attribute(name(made.source), "dtype", ast.Load())
        smaller = Alloc(array, "empty", tuple(shape_of(made.source, k) for k in rest), dtype, None, made.line)
        row = [name(loop.var) if k == axis else ast.Slice() for k in range(rank)]
        start = [Store(array, tuple(ast.Slice() for _ in rest), load(made.source, row), False, loop.line)]
    contracting = _Contracting(array, axis)
    position, place = block.index(made), block.index(loop)
    block[position] = smaller
    body = [*start, *(_without_axis(s, contracting) for s in loop.body)]
    block[place] = mapped(loop, [body])


class _Contracting(ast.NodeTransformer):
    """Leaves out an axis of an array."""

    def __init__(self, array: str, axis: int):
        self.array, self.axis = array, axis

    def index(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(self.of(part) for k, part in enumerate(index) if k != self.axis)

    def of(self, node: Expr) -> Expr:
        result: Expr = self.visit(copy.deepcopy(node))
        return result

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        element = element_of(node)
        if element is not None and element[0] == self.array:
            return load(self.array, self.index(element[1]))
        return self.generic_visit(node)


def _without_axis(statement: Stmt, contracting: _Contracting) -> Stmt:
    blocks = [[_without_axis(s, contracting) for s in b] for b in blocks_of(statement)]
    of = contracting.of
    if isinstance(statement, Assign):
        return Assign(statement.name, of(statement.value), statement.line)
    if isinstance(statement, Store):
        own = statement.array == contracting.array
        index = contracting.index(statement.index) if own else tuple(of(i) for i in statement.index)
        return Store(statement.array, index, of(statement.value), statement.add, statement.line)
    if isinstance(statement, (If, While, Guard)):
        result = mapped(statement, blocks)
        assert isinstance(result, (If, While, Guard))
        result.test = of(statement.test)
        return result
    return mapped(statement, blocks)


def hoisted(block: list[Stmt], records: set[str], steady: Callable[[Expr], bool]) -> list[Stmt]:
    """The block with records made once, before the outermost loop, if their size does not change."""
    result: list[Stmt] = []
    for statement in block:
        moved: list[Stmt] = []
        if isinstance(statement, (For, While, If)):
            statement = _without_records(statement, records, steady, moved)
        result += [*moved, statement]
    return result


def _without_records(statement: Stmt, records: set[str], steady: Callable[[Expr], bool], moved: list[Stmt]) -> Stmt:
    blocks: list[list[Stmt]] = []
    for inner in blocks_of(statement):
        rest: list[Stmt] = []
        for each in inner:
            if isinstance(each, Alloc) and each.name in records and all(steady(s) for s in each.shape):
                moved.append(each)
            else:
                rest.append(_without_records(each, records, steady, moved) if blocks_of(each) else each)
        blocks.append(rest)
    return mapped(statement, blocks)


def defined(block: list[Stmt], parameters: Iterable[str], kinds: Callable[[str], str]) -> list[Stmt]:
    """The block, with a value for each number that may be read, to no effect, before it has one."""
    from app.custom.derivative.arrays.reader import exposed

    saved = {s.value.id for s in walk(block) if isinstance(s, Assign) and isinstance(s.value, ast.Name)}
    missing = exposed(block) | exposed(simplified(block, last=True)) & saved  # forgotten, and yet put aside
    missing &= assigned_in(block) - set(parameters)
    values = {"float": 0.0, "int": 0, "bool": False}
    return [*(Assign(key, number(values[kinds(key)])) for key in sorted(missing)), *block]


def simplified(block: Sequence[Stmt], last: bool = False) -> list[Stmt]:
    """The block without empty branches and loops, and with tests turned round where only the second branch is left."""
    result: list[Stmt] = []
    for statement in block:
        itself = isinstance(statement, Assign) and isinstance(statement.value, ast.Name)
        if (itself and statement.value.id == statement.name) or (isinstance(statement, Forget) and last):  # type: ignore[union-attr]
            continue
        inner = blocks_of(statement)
        if inner:
            statement = mapped(statement, [simplified(b, last) for b in inner])
        if isinstance(statement, If):
            if not statement.body and not statement.orelse:
                continue
            if not statement.body:
                statement = If(_turned(statement.test), statement.orelse, [], statement.line)
        if isinstance(statement, If) and result and _same_branches(result[-1], statement):
            before = result.pop()
            both = zip(blocks_of(before), blocks_of(statement), strict=True)
            yes, no = (simplified([*one, *other], last) for one, other in both)
            statement = If(statement.test, yes, no, before.line)
        if isinstance(statement, For) and all(isinstance(s, Forget) for s in statement.body):
            continue
        if isinstance(statement, Store) and statement.add and result and _is_zeroing(result[-1], statement):
            result[-1] = Store(statement.array, statement.index, statement.value, False, statement.line)
            continue
        result.append(statement)
    return result


def _same_branches(before: Stmt, statement: If) -> bool:
    """Whether two statements branch by one test, which the first one does not change."""
    if not isinstance(before, If) or not same(before.test, statement.test) or any(map(has_break, blocks_of(before))):
        return False
    inside = blocks_of(before)
    return not names_of(before.test) & {
        key for b in inside for key in (assigned_in(b) | stored_in(b) | allocated_in(b))
    }


def _is_zeroing(before: Stmt, statement: Store) -> bool:
    """Whether the statement before sets the element to zero to which a statement adds."""
    if not isinstance(before, Store) or before.array != statement.array or before.add:
        return False
    alike = all(same(a, b) for a, b in zip(before.index, statement.index, strict=True))
    return alike and number_in(before.value) == 0 and statement.array not in names_of(statement.value)


def _turned(test: Expr) -> Expr:
    from app.custom.derivative.arrays.core import opposite

    return opposite(test)


__all__ = ["binary", "name", "replaced", "same"]
