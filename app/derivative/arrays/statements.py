"""Reads statements: branches and loops, and the assignments and calls in them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from app.derivative.arrays.assignments import AssignmentReader
from app.derivative.arrays.core import (
    Assign,
    Break,
    Copied,
    Expr,
    For,
    If,
    Stmt,
    Variable,
    While,
    allocated_in,
    assigned_in,
    binary,
    compare,
    loads_of,
    mapped,
    minus,
    names_of,
    opposite,
    plus,
    stored_in,
)
from app.derivative.arrays.flow import exposed
from app.derivative.arrays.values import Array, Number, Value, constant_int
from app.derivative.terms import name, number
from app.functions import function_name

_JUMPS = (ast.Break, ast.Continue, ast.Return)


class StatementReader(AssignmentReader):
    """Reads the statements of a function."""

    statement_read: ast.stmt | None = None
    after: Sequence[ast.stmt] = ()
    before: Sequence[ast.stmt] = ()

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for position, statement in enumerate(statements):
            self.line, self.statement_read = statement.lineno, statement
            self.after = statements[position + 1 :]
            self.before = statements[:position]
            self.statement(statement)

    def inner(self, statements: Sequence[ast.stmt]) -> list[Stmt]:
        """The statements of a block. Arrays that it makes and views that it takes have no name outside of it."""
        before = dict(self.names.values)
        with self.collected() as result:
            self.block(statements)
        self._forget_since(before)
        return result

    def _forget_since(self, before: dict[str, Value]) -> None:
        """Forget the names of what a block made, other than numbers."""
        for key, value in list(self.names.values.items()):
            if not isinstance(value, Number) and before.get(key) is not value:
                del self.names.values[key]

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.assign(node.targets[0], node.value, node)
        elif isinstance(node, ast.Assign):
            first, *others = node.targets
            if not isinstance(first, ast.Name):
                value = self._lasting(self.value(node.value))
                if isinstance(value, Array) and not all(isinstance(target, ast.Subscript) for target in node.targets):
                    self.refuse(node, "assigns to several places; write one assignment for each")
                for target in node.targets:
                    self._to(target, value, node)
                return
            self.assign(first, node.value, node)
            for target in others:
                self.assign(target, ast.copy_location(ast.Name(first.id, ast.Load()), first), node)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, node.value, node)
        elif isinstance(node, ast.AugAssign):
            self.augmented(node)
        elif isinstance(node, ast.For):
            self.loop(node)
        elif isinstance(node, ast.While):
            self.while_loop(node)
        elif isinstance(node, ast.If):
            self.branch(node)
        elif isinstance(node, ast.Break):
            self.emit(Break())
        elif isinstance(node, (ast.Pass, ast.Assert)) or self.names.scope.is_idle(node):
            return
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.helper(self.names.scope.meaning(node.value.func), node.value, alone=True)
        elif isinstance(node, ast.Return):
            self.refuse(node, "returns before the end; assign the result, and return it at the end of the function")
        else:
            self.refuse(node, "is a statement that cannot be derived; write assignments, loops, branches or calls")

    def branch(self, node: ast.If) -> None:
        if node.body and isinstance(node.body[-1], ast.Raise):
            self._guarded(node)
            return self.block(node.orelse)
        if node.orelse and isinstance(node.orelse[-1], ast.Raise):
            return self.block(node.body)
        test = self.test(node.test)
        if isinstance(test, ast.Constant):
            return self.block(node.body if test.value else node.orelse)
        self._copy_inputs_that_change([*node.body, *node.orelse])
        self.branches += 1
        body = self.inner(node.body)
        orelse = self.inner(node.orelse)
        self.branches -= 1
        self.line = node.lineno
        return self.emit(If(test, body, orelse))

    def _guarded(self, node: ast.If) -> None:
        """A guard of a derived function stays one. What a user's function raises, the forward pass has raised."""
        error = node.body[-1]
        if not isinstance(error, ast.Raise) or not isinstance(error.exc, ast.Call) or len(error.exc.args) != 1:
            return
        message = error.exc.args[0]
        if self.names.scope.meaning(error.exc.func) is not ValueError or not isinstance(message, ast.Constant):
            return
        test = self.test(node.test)
        if not isinstance(test, ast.Constant) or test.value:
            self.guard(opposite(test), str(message.value))

    def _copy_inputs_that_change(self, block: Sequence[ast.stmt]) -> None:
        """Give a name that a loop or a branch assigns an array of its own, if it has an input so far."""
        stored = {n.id for s in block for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for key in sorted(stored):
            value = self.names.values.get(key)
            if isinstance(value, Array) and value.base in self.inputs:
                self.names.values[key] = self._named(Array(value.dims, value.element, value.kind, value.dtype), key)
                self._made_in[id(self.names), key] = self.block_number

    # Loops

    def loop(self, node: ast.For) -> None:
        if node.orelse:
            self.refuse(node, "has an `else`, which cannot be derived; set a variable, and test it after the loop")
        self._copy_inputs_that_change(node.body)
        target, iterator = node.target, node.iter
        function = self.names.scope.meaning(iterator.func) if isinstance(iterator, ast.Call) else None
        if function_name(function) == "prange" and (getattr(function, "__module__", None) or "").startswith("numba"):
            function = range
        if function is reversed and isinstance(iterator, ast.Call):
            iterator = self._backwards(iterator)
            function = range
        if function is range and isinstance(iterator, ast.Call):
            return self._range(node, iterator)
        counter = None
        if function is enumerate and isinstance(iterator, ast.Call) and isinstance(target, ast.Tuple):
            if len(iterator.args) != 1 or not isinstance(target.elts[0], ast.Name):
                self.refuse(iterator, "enumerates in a way that cannot be derived; write a loop over range(...)")
            counter, target, iterator = target.elts[0].id, target.elts[1], iterator.args[0]
            function = self.names.scope.meaning(iterator.func) if isinstance(iterator, ast.Call) else None
        if function is zip and isinstance(iterator, ast.Call) and isinstance(target, ast.Tuple):
            return self._rows(node, list(zip(target.elts, iterator.args, strict=True)), counter)
        return self._rows(node, [(target, iterator)], counter)

    def _backwards(self, node: ast.Call) -> ast.Call:
        """`reversed(range(start, stop))` as a range."""
        inner = node.args[0] if len(node.args) == 1 else None
        if not isinstance(inner, ast.Call) or self.names.scope.meaning(inner.func) is not range or len(inner.args) > 2:
            self.refuse(node, "is not reversed(range(start, stop)); write a loop over range(...)")
        start, stop = [number(0), *inner.args][-2:]
        bounds = [ast.BinOp(bound, ast.Sub(), number(1)) for bound in (stop, start)]
        called = ast.Call(inner.func, [*bounds, ast.UnaryOp(ast.USub(), number(1))], [])
        return ast.fix_missing_locations(ast.copy_location(called, node))

    def _range(self, node: ast.For, iterator: ast.Call) -> None:
        if not isinstance(node.target, ast.Name):
            self.refuse(node.target, "is no single variable")
        text = node.target.id
        bounds = [self.integer(each) for each in iterator.args]
        start, stop = (number(0), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        step = constant_int(bounds[2]) if len(bounds) == 3 else 1
        if step == 0:
            self.refuse(iterator, "has a step of zero")
        if step is None:
            size = self.fixed(bounds[2])
            self.guard(compare(size, ast.Gt(), number(0)), f"{self.place(node)}: the step is not positive")
            count = binary(plus(minus(stop, start), minus(size, 1)), ast.FloorDiv(), size)
            start, variable = self.fixed(start), self.loop_name()
            value = plus(start, binary(name(variable), ast.Mult(), size))
            return self._loop(node, variable, number(0), count, 1, {text: Number(value, "int")})
        variable = self._loop_variable(text)
        return self._loop(node, variable, start, stop, step, {text: Number(name(variable), "int")})

    def _loop_variable(self, text: str) -> str:
        """The user's name for the variable of a loop, unless it has another meaning, too."""
        clash = text in self.names.assigned or text in self.loops or text in self.settings
        foreign = self.names.scope is not self.scope and text in self.scope.all_names
        if clash or foreign or text in self.variables.keys() - self.loop_variables:
            return self.loop_name()
        self.all_names.add(text)
        self.loop_variables.add(text)
        return text

    def _rows(self, node: ast.For, pairs: list[tuple[ast.expr, ast.expr]], counter: str | None) -> None:
        arrays = [self.in_memory(self.array(iterated)) for _, iterated in pairs]
        for other in arrays[1:]:
            self.agree(arrays[0].dims[0], other.dims[0], node)
        variable = self._loop_variable(counter) if counter else self.loop_name()
        values: dict[str, Value] = {} if counter is None else {counter: Number(name(variable), "int")}
        for (target, _), array in zip(pairs, arrays, strict=True):
            if not isinstance(target, ast.Name):
                self.refuse(target, "unpacks a row; index it instead")
            self.loops.append(variable)
            values[target.id] = self.indexed(array, [Number(name(variable), "int")], node)
            self.loops.pop()
            if array.rank > 1:
                self._views.add(array.base)
        self._loop(node, variable, number(0), arrays[0].dims[0], 1, values)

    def _loop(self, node: ast.For, variable: str, start: Expr, stop: Expr, step: int, values: dict[str, Value]) -> None:
        self.variables[variable] = Variable(0, "int")
        before = {key: self.names.values.get(key) for key in values}
        own = {key for key in values if key in self.names.assigned or not _is_variable(values[key])}
        self.loops.append(variable)
        with self.collected() as body:
            for key, value in values.items():
                if isinstance(value, Number) and key in own:
                    self._bind(ast.copy_location(ast.Name(key, ast.Store()), node), value)
                else:
                    self.names.values[key] = value
            body += self.inner(settled(node.body))
        self.loops.pop()
        for key, former in before.items():
            if isinstance(values[key], Array) or key not in own:
                self.names.values.pop(key, None)
                if isinstance(former, Number) and names_of(former.expr) & {*self.loops}:
                    self.names.values[key] = former
        self.line = node.lineno
        start, stop = (self._steady(each, body) for each in (start, stop))
        self.emit(For(variable, start, stop, step, body))

    def _steady(self, bound: Expr, body: list[Stmt]) -> Expr:
        """A bound of a loop that its body does not change."""
        changed = names_of(bound) & (assigned_in(body) | stored_in(body) | allocated_in(body))
        return self.temporary(bound, "int", "stop") if changed or loads_of(bound) else bound

    def while_loop(self, node: ast.While) -> None:
        """Count the iterations of a `while` first, on values that are put back, then loop over a range."""
        if node.orelse:
            self.refuse(node, "has an `else`, which cannot be derived; set a variable, and test it after the loop")
        self._copy_inputs_that_change(node.body)
        with self.collected() as before:
            test = self.test(node.test)
        if before:
            self.refuse(node.test, "calls a function in the test of a loop; assign its result before the test")
        variable = self.loop_name()
        self.loops.append(variable)
        body = self.inner(settled(node.body))
        self.loops.pop()
        self.line = node.lineno
        count = self.number_variable("count", "int")
        numbers = sorted(exposed(body, names_of(test)) & assigned_in(body))
        arrays = sorted(stored_in(body) - allocated_in(body))
        copies = {key: self.number_variable(f"{key}_start", self.variables[key].kind) for key in numbers}
        for key, text in copies.items():
            self.emit(Assign(text, name(key)))
        originals = {key: self._copy(key) for key in arrays}
        self.emit(Assign(count, number(0)))
        counting = Assign(count, binary(name(count), ast.Add(), number(1)), node.lineno)
        self.emit(While(test, [counting, *(mapped(s) for s in body)]))
        for key, text in copies.items():
            self.emit(Assign(key, name(text)))
        for key, text in originals.items():
            self.fill(self.plain(key), self.plain(text).element)
        self.emit(For(variable, number(0), name(count), 1, _without_breaks(body)))

    def _copy(self, key: str) -> str:
        text = self.fresh(f"{key}_start")
        self.variables[text], self.dims[text] = copy.copy(self.variables[key]), self.dims[key]
        self.emit(Copied(text, "copy", key))
        return text


def settled(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements in which nothing follows a `break`, `continue` or `return`: what did is put into the branches."""
    result: list[ast.stmt] = []
    for position, statement in enumerate(statements):
        if isinstance(statement, ast.Continue):
            return result
        if isinstance(statement, (ast.Break, ast.Return)):
            return [*result, statement]
        if isinstance(statement, ast.If) and any(_jumps(s) for s in (*statement.body, *statement.orelse)):
            rest = list(statements[position + 1 :])
            yes, no = (settled([*part, *rest]) for part in (statement.body, statement.orelse))
            return [*result, ast.copy_location(ast.If(statement.test, yes, no), statement)]
        result.append(statement)
    return result


def _jumps(node: ast.stmt) -> bool:
    """Whether a statement may leave the loop, iteration or function that it stands in."""
    if isinstance(node, _JUMPS):
        return True
    if isinstance(node, ast.If):
        return any(_jumps(s) for s in (*node.body, *node.orelse))
    return False


def _without_breaks(body: Sequence[Stmt]) -> list[Stmt]:
    """A body whose breaks do nothing, since the loop ends anyway."""
    result: list[Stmt] = []
    for statement in body:
        if isinstance(statement, Break):
            continue
        if isinstance(statement, If):
            blocks = [_without_breaks(statement.body), _without_breaks(statement.orelse)]
            result.append(mapped(statement, blocks))
        else:
            result.append(statement)
    return result


def _is_variable(value: Value) -> bool:
    return isinstance(value, Number) and isinstance(value.expr, ast.Name)
