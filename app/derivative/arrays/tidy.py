"""Removes what nobody needs from a derived function, and writes the rest as a person would."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from app.derivative.arrays.core import (
    Alloc,
    Assign,
    Copied,
    Expr,
    For,
    Forget,
    Function,
    If,
    Stmt,
    Store,
    While,
    added_to,
    allocated_in,
    assigned_in,
    blocks_of,
    has_break,
    mapped,
    names_of,
    opposite,
    parts_of,
    plus,
    same,
    stored_in,
    transformed,
    walk,
)
from app.derivative.arrays.dependence import Dependence, accesses
from app.derivative.arrays.flow import Flow, exposed, reads_of, without_dead
from app.derivative.terms import negative, number, number_in, with_parts

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
            if isinstance(statement, (Assign, Store)) and zeros & names_of(statement.value):
                statement = transformed(statement, [], partial(_folded, zeros=zeros))
                if isinstance(statement, Store) and statement.add and number_in(statement.value) == 0:
                    continue
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
        added = added_to(value, key)
        return [statement if added is None else Assign(key, added, statement.line)]


def _folded(node: Expr, zeros: set[str]) -> Expr:
    """An expression without terms that are zero."""
    if zeros.isdisjoint(names_of(node)):
        return node
    if isinstance(node, ast.Name):
        return number(0.0)
    node = with_parts(node, partial(_folded, zeros=zeros))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and number_in(node.operand) == 0:
        return number(0.0)
    if isinstance(node, ast.BinOp):
        left, right = number_in(node.left) == 0, number_in(node.right) == 0
        if (isinstance(node.op, ast.Mult) and (left or right)) or (isinstance(node.op, ast.Div) and left):
            return number(0.0)
        if isinstance(node.op, (ast.Add, ast.Sub)) and right:
            return node.left
        if isinstance(node.op, (ast.Add, ast.Sub)) and left:
            return node.right if isinstance(node.op, ast.Add) else negative(node.right)
    return node


# Names that are used once


def inlined(block: list[Stmt], results: Sequence[str], temporary: Callable[[str], bool]) -> list[Stmt]:
    """The block without temporaries that are used once, or that only rename something."""
    for _ in range(12):
        flow = Flow(block, results)
        inlining = _Inlining(flow, temporary)
        block = inlining.block(block)
        if not inlining.count:
            break
        block = without_dead(block, results)
    return block


class _Inlining:
    def __init__(self, flow: Flow, temporary: Callable[[str], bool]):
        self._flow, self._users, self._rooted, self._temporary = flow, flow.users(), set(flow.roots), temporary
        self.count = 0
        """How many names were replaced."""
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
                    self.count += 1
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
        for definitions in self._users.values():
            definitions[:] = [new if u == old else u for u in definitions]
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


def ahead(block: list[Stmt], results: Sequence[str], function: Function) -> list[Stmt]:
    """The block with loops that run forward where the order of their iterations has no effect."""
    dependence = Dependence(function.with_body(block))
    flow = Flow(block, results)
    users = flow.users()
    for each in flow.roots:
        users.setdefault(each, []).append(0)
    loops = [s for s in walk(block) if isinstance(s, For) and s.step == -1 and s.backward]
    free = {id(loop) for loop in loops if _is_free(loop, dependence) and not _lasts(loop, users)}
    return _turned_round(block, free)


def _lasts(loop: For, users: Mapping[int, Sequence[int]]) -> bool:
    """Whether a number that an iteration of a loop assigns is read after the loop."""
    inside = {id(s) for s in walk(loop.body)}
    assigns = [s for s in walk(loop.body) if isinstance(s, Assign)]
    return any({*users.get(id(s), [])} - inside and not _only_adds(loop.body, s.name) for s in assigns)


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

    negative_one = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and number_in(node.operand) == 1
    return number(0) if negative_one else plus(node, 1)


def _is_free(loop: For, dependence: Dependence) -> bool:
    """Whether the iterations of a loop may run in any order."""
    body = loop.body
    if has_break(body) or any(isinstance(s, While) for s in walk(body)):
        return False
    if not all(_only_adds(body, key) for key in exposed(body) & assigned_in(body)):
        return False
    for array in stored_in(body) - allocated_in(body):
        touched = accesses(array, body, dependence)
        if touched is None:
            return False
        adds = all(s.add for s in walk(body) if isinstance(s, Store) and s.array == array)
        writes = [access for access in touched if access.is_write]
        others = [access for access in touched if not (access.is_write and adds)]  # sums may have any order
        if any(dependence.touches_in_other(write, each, loop) for write in writes for each in others):
            return False
    return True


def _only_adds(body: Sequence[Stmt], key: str) -> bool:
    """Whether all that is done with a number is to add to it."""
    for statement in walk(body):
        if isinstance(statement, Assign) and statement.name == key:
            if added_to(statement.value, key) is None:
                return False
        elif key in reads_of(statement):
            return False
    return True


def sunk(block: Sequence[Stmt], temporary: Callable[[str], bool]) -> list[Stmt]:
    """The block with the zero that a gradient begins with assigned right before the gradient is used."""
    result = [mapped(s, [sunk(b, temporary) for b in blocks_of(s)]) if blocks_of(s) else s for s in block]
    for statement in list(result):
        if not isinstance(statement, Assign) or number_in(statement.value) != 0 or not temporary(statement.name):
            continue
        position = following = result.index(statement) + 1
        while following < len(result) and statement.name not in _named(result[following]):
            if has_break([result[following]]):
                following = position  # what follows may not run
                break
            following += 1
        if position < following < len(result):
            result.insert(following, statement)
            del result[position - 1]
    return result


def _named(statement: Stmt) -> set[str]:
    """The numbers that a statement reads or assigns, the statements inside of it included."""
    return {key for s in walk([statement]) for key in (reads_of(s) | {getattr(s, "name", "")})}


def defined(block: list[Stmt], parameters: Iterable[str], kinds: Callable[[str], str]) -> list[Stmt]:
    """The block, with a value for each number that may be read, to no effect, before it has one."""

    saved = {s.value.id for s in walk(block) if isinstance(s, Assign) and isinstance(s.value, ast.Name)}
    undefined = exposed(block) | exposed(simplified(block, last=True)) & saved  # forgotten, and yet put aside
    undefined &= assigned_in(block) - set(parameters)
    values = {"float": 0.0, "int": 0, "bool": False}
    return [*(Assign(key, number(values[kinds(key)])) for key in sorted(undefined)), *block]


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
                statement = If(opposite(statement.test), statement.orelse, [], statement.line)
        if isinstance(statement, If) and result and _same_branches(result[-1], statement):
            before = result.pop()
            both = zip(blocks_of(before), blocks_of(statement), strict=True)
            yes, no = (simplified([*one, *other], last) for one, other in both)
            statement = If(statement.test, yes, no, before.line)
        if isinstance(statement, For) and all(isinstance(s, Forget) for s in statement.body):
            continue
        if isinstance(statement, Store) and statement.add and (zeroing := _zeroing(result, statement)) is not None:
            result.remove(zeroing)
            statement = Store(statement.array, statement.index, statement.value, False, statement.line)
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


def _zeroing(before: Sequence[Stmt], statement: Store) -> Store | None:
    """What sets the element to zero to which a statement adds, if nothing reads it in between."""
    names = {statement.array}.union(*map(names_of, statement.index))
    if statement.array in names_of(statement.value):
        return None
    for each in reversed(before):
        if isinstance(each, Store) and each.array == statement.array and number_in(each.value) == 0:
            alike = all(same(a, b) for a, b in zip(each.index, statement.index, strict=True))
            return each if alike and not each.add else None
        if not isinstance(each, Assign) or each.name in names or statement.array in names_of(each.value):
            return None
    return None


def _with_few_signs(node: Expr) -> Expr:
    """An expression in which a minus is moved out of products, and into sums."""
    node = with_parts(node, _with_few_signs)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return negative(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
        if isinstance(node.op, (ast.Mult, ast.Div)):
            result: Expr = ast.BinOp(_unsigned(left), node.op, _unsigned(right))
            return negative(result) if _is_negated(left) != _is_negated(right) else result
        if isinstance(node.op, (ast.Add, ast.Sub)) and _is_negated(right):
            op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            return ast.BinOp(left, op, _unsigned(right))
        if isinstance(node.op, ast.Add) and _is_negated(left):
            return ast.BinOp(right, ast.Sub(), _unsigned(left))
    return node


def _is_negated(node: Expr) -> bool:
    return (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant)
    )


def _unsigned(node: Expr) -> Expr:
    return node.operand if isinstance(node, ast.UnaryOp) and _is_negated(node) else node


def with_few_signs(block: Sequence[Stmt]) -> list[Stmt]:
    """The block with `a - b` for `a + -b`, and `-(a * b)` for `-a * b`."""
    return [transformed(s, [with_few_signs(b) for b in blocks_of(s)], _with_few_signs) for s in block]
