"""Reads the source of a function on arrays into the small language, or refuses it with the line and what to write.

Views are replaced by what they stand for, whole-array expressions by loops, and the user's own helpers by their
statements. Shapes that have to agree, and slices that have to lie inside, are guarded where this is not evident.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.derivative.arrays.core import (
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
    compare,
    load,
    loads_of,
    mapped,
    minus,
    named_in,
    names_of,
    opposite,
    parts_of,
    plus,
    renamed,
    shapes_of,
    stored_in,
    text_of,
    walk,
)
from app.derivative.arrays.expressions import ExpressionReader, is_evident
from app.derivative.arrays.values import (
    TYPES,
    Array,
    Index,
    Items,
    Names,
    Number,
    Object,
    Value,
    broadcast,
    constant_int,
    is_one,
    kind_of,
    wider,
)
from app.derivative.scope import Scope
from app.derivative.terms import name, number
from app.functions import function_name, python_function
from app.ops.spec import stretched

_JUMPS = (ast.Break, ast.Continue, ast.Return)
_RESERVED = {"np", "math", "max", "min", "abs", "int", "float", "bool", "range", "len", "round", "pow", "ValueError"}


class Reader(ExpressionReader):
    """Reads one function."""

    def __init__(self, function: Any, specs: Sequence[Any]):
        super().__init__(function)
        self._made_in: dict[tuple[int, str], int] = {}
        """The block in which a name got a value that is not a number."""
        self._views: set[str] = set()
        """Arrays of which there are views, or other names."""
        self._scopes = [self.names]
        self._outside: set[str] = set()
        """While a helper is read, the variables of the functions that call it."""
        self.statement_read: ast.stmt | None = None
        self.defaults: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        """The settings that are no numbers, with the values for which the function is read."""
        self._parameters(specs)

    def read(self) -> Function:
        scope = self.scope
        body = settled(scope.body)
        outputs = self._results(self._returned(body, False), body[-1])
        self.statement_read = None
        self._refuse_products_that_grow()
        return Function(scope.name, self.out, self.variables, self.inputs, self.settings, outputs)

    def _refuse_products_that_grow(self) -> None:
        """Refuse products of integers that a loop multiplies again and again, as factorials are, if they are used as
        values: Python's integers have any size. What is compared with something, or is an index, stays below that.
        """
        statements = walk(self.out)
        repeated = (s for loop in statements if isinstance(loop, (For, While)) for s in walk(loop.body))
        products = {
            s.name: s
            for s in repeated
            if isinstance(s, Assign) and self.variables[s.name].kind == "int" and _multiplies(s)
        }
        for statement in statements:
            tests = [*parts_of(statement)] if isinstance(statement, (For, While, If, Guard)) else []
            tests += statement.index if isinstance(statement, Store) else ()
            tests += [part for each in parts_of(statement) for _, index in loads_of(each) for part in index]
            for bounded in set[str]().union(*map(names_of, tests)) & products.keys():
                del products[bounded]
        for statement in statements:
            value = statement.value if isinstance(statement, (Assign, Store)) else None
            for key in sorted(products.keys() & names_of(value)) if value is not None else ():
                if statement is not products[key]:
                    node: Any = ast.parse(f"{key} = {text_of(products[key].value)}").body[0]
                    node.lineno = products[key].line
                    self.refuse(
                        node,
                        "multiplies integers in a loop, which have any size in Python, and 64 bits in compiled code; "
                        "begin with a float, such as 1.0",
                    )

    def _parameters(self, specs: Sequence[Any]) -> None:
        scope = self.scope
        parameters = list(inspect.signature(scope.function, follow_wrapped=False).parameters.values())
        reserved = sorted((set(self.names.stores) | {p.name for p in parameters}) & _RESERVED)
        if reserved:
            scope.refuse(
                scope.tree, f"has a variable {reserved[0]!r}, which the gradient needs by this name; rename it"
            )
        shapes = stretched(*(getattr(example, "shape", None) or () for example in specs))
        for position, parameter in enumerate(parameters):
            key = parameter.name
            example = specs[position] if position < len(specs) else parameter.default
            if example is parameter.empty or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                scope.refuse(scope.tree, f"has a parameter {key!r} of which neither shape nor value is known")
            shape = getattr(example, "shape", None)
            numeric = isinstance(example, (bool, int, float, np.number))
            if shape is None and not numeric:
                parts = [self._global(part, scope.tree) for part in example] if isinstance(example, tuple) else []
                self.names.values[key] = Items(parts) if parts else Object(example)
                self._made_in[id(self.names), key] = self.block_number
                if parameter.default is not parameter.empty and is_plain(example):
                    self.constants[key] = example
                continue
            if shape and position >= len(specs):
                scope.refuse(
                    scope.tree, f"has an array as the default of {key!r}; make it a parameter without a default"
                )
            dtype = np.dtype(example.dtype) if shape is not None else np.asarray(example).dtype
            kind = kind_of(dtype)
            if kind is None:
                scope.refuse(scope.tree, f"takes {key!r} of type {dtype}; {TYPES}")
            if shape is not None and len(shape):
                self.inputs.append(key)
                if kind == "float":
                    self.float_types[key] = dtype.name
                self.variables[key] = Variable(len(shape), kind, ast.Attribute(name(key), "dtype", ast.Load()))
                self.dims[key] = [
                    ast.Subscript(ast.Attribute(name(key), "shape", ast.Load()), number(axis), ast.Load())
                    for axis in range(len(shape))
                ]
                for axis, size in enumerate(shapes[position] if position < len(specs) else ()):
                    if size == 1:
                        one = compare(self.dims[key][axis], ast.Eq(), number(1))
                        self.guard(one, f"axis {axis} of {key} is expected to have size 1")
                        self.dims[key][axis] = number(1)
                self.names.values[key] = self.plain(key)
                self._made_in[id(self.names), key] = self.block_number
            else:
                if not numeric:
                    self.inputs.append(key)
                self.settings.append(key)
                if parameter.default is not parameter.empty:
                    self.defaults[key] = parameter.default
                self.variables[key] = Variable(0, kind)
                self.names.values[key] = Number(name(key), kind)
                if key in self.names.assigned:
                    changing = self.number_variable(key, kind)
                    self.emit(Assign(changing, name(key)))
                    self.names.values[key] = Number(name(changing), kind)

    # Statements

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

    # Assignments

    def assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            values = [self.value(part) for part in value.elts]
            exchanges = sorted(map(ast.unparse, target.elts)) == sorted(map(ast.unparse, value.elts))
            for place, (each, part) in enumerate(zip(values, value.elts, strict=True)):
                if isinstance(each, Array) and each.base and each.base not in {*self.unnamed, *self.inputs}:
                    if exchanges and self.is_whole(each) and each.base not in self._views | self.perhaps_same:
                        values[place] = self.new(self.materialise(each, "t"))
                        continue
                    self.refuse(
                        part, "gives an array another name, together with others; write one assignment for each"
                    )
            values = [self._lasting(each) for each in values]
            for one, each in zip(target.elts, values, strict=True):
                self._to(one, each, node)
            return
        if isinstance(target, ast.Subscript) and self._assigned_by_mask(target, value, node, None):
            return
        result = self.value(value)
        if not isinstance(target, ast.Tuple):
            self._to(target, result, node)
            return
        if isinstance(result, Array):
            self.agree(result.dims[0], number(len(target.elts)), node)
            rows = self.in_memory(result)
            result = Items([self.indexed(rows, [Number(number(k), "int")], node) for k in range(len(target.elts))])
        if not isinstance(result, Items) or len(result.parts) != len(target.elts):
            self.refuse(node, f"unpacks something other than {len(target.elts)} values")
        for one, each in zip(target.elts, [self._lasting(each) for each in result.parts], strict=True):
            self._to(one, each, node)

    def _lasting(self, value: Value) -> Value:
        """A value that later assignments do not change."""
        if isinstance(value, Items):
            return Items([self._lasting(part) for part in value.parts])
        if isinstance(value, Number):
            changing = names_of(value.expr) - self.unchanging
            if changing or loads_of(value.expr):
                return Number(self.temporary(value.expr, value.kind), value.kind)
        if isinstance(value, Array) and not value.base:
            return self.new(self.materialise(value, "t"))
        return value

    def _to(self, target: ast.expr, value: Value, node: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self._bind(target, value)
        elif isinstance(target, ast.Subscript):
            self._element(target, value, node)
        else:
            self.refuse(target, "is neither a variable nor an element of an array")

    def _bind(self, target: ast.Name, value: Value) -> None:
        text = target.id
        before = self.names.values.get(text)
        if isinstance(before, (Items, Object)) and self._is_made_here(text):
            before = None  # as if it were another name
        if isinstance(value, Array):
            self._bind_array(target, value, before)
        elif isinstance(value, Number):
            self._bind_number(target, value, before)
        elif before is not None:
            self.refuse(target, "gets a tuple, a function or a type, and had another value; use another name")
        else:
            self.names.values[text] = lasting = self._lasting(value)
            self._made_in[id(self.names), text] = self.block_number
            self._views |= _bases_in(lasting)

    def _bind_number(self, target: ast.Name, value: Number, before: Value | None) -> None:
        text = target.id
        if isinstance(before, Number) and isinstance(before.expr, ast.Name):
            key = before.expr.id
            if key in self.loops:
                self.refuse(target, "is the variable of a loop, and is assigned inside of it; use another name")
        elif before is not None:
            self.refuse(target, "gets a number, and was something else; use another name")
        else:
            key = text if self.names.scope is self.scope and text not in self.variables else self.fresh(text)
            self.all_names.add(key)
            if self.names.stores.get(text, 0) == 1 and not self.block_number:
                self.steady.add(key)
                if not loads_of(value.expr) and names_of(value.expr) <= {*self.settings, *self.definitions}:
                    self.definitions[key] = value.expr
        kind = wider(self.variables[key].kind, value.kind) if key in self.variables else value.kind
        self.variables[key] = Variable(0, kind)
        self.names.values[text] = Number(name(key), kind)
        self.emit(Assign(key, value.expr))

    def _bind_array(self, target: ast.Name, value: Array, before: Value | None) -> None:
        text = target.id
        if before is not None and not isinstance(before, Array):
            self.refuse(target, "gets an array, and was something else; use another name")
        new = value.base in self.unnamed
        if before is None or self._is_made_here(text):
            if value.base and not new:
                self._views.add(value.base)
                self.names.values[text] = value
            else:
                self.names.values[text] = self._named(value, text)
            self._made_in[id(self.names), text] = self.block_number
            return
        key = before.base
        if key in self.inputs:
            self.refuse(target, "gets another array in a loop or a branch; use another name before it")
        if key in self._views or not self.is_whole(before):
            self.refuse(target, "gets another array while views of the former exist; write to its elements instead")
        if before.rank != value.rank:
            self.refuse(target, f"has {before.rank} dimensions, and gets {value.rank}; use another name")
        if value.base not in {"", key} and not new and not self._is_last_use(value.base):
            self.refuse(target, "becomes another name of an array; write `.copy()` after it")
        for one, other in zip(self.dims[key], value.dims, strict=True):
            self.agree(one, other, target)
        place = self.plain(key)
        source = value
        if value.base in {"", key} and self._overlaps(place, value):
            source = self.plain(self.materialise(value, f"{text}_next"))
        self.fill(place, lambda at: source.element(broadcast(at, source.dims)))

    def _is_made_here(self, text: str) -> bool:
        """Whether a name of the function that is read got its array in the block that is read."""
        return self._made_in.get((id(self.names), text)) == self.block_number

    def _named(self, value: Array, text: str) -> Array:
        """An array that an expression made, under the name of the variable that it is assigned to."""
        wish = text if self.names.scope is self.scope and text not in self.variables else self.fresh(text)
        if not self.is_whole(value):  # it is computed, or a part of an array that has no name
            self.all_names.discard(wish)
            return self.plain(self.materialise(value, wish))
        self.all_names.add(wish)
        old = value.base
        if old in self.perhaps_same:
            self.perhaps_same.add(wish)
        self.unnamed.discard(old)
        self.all_names.discard(old)
        self.variables[wish], self.dims[wish] = self.variables.pop(old), self.dims.pop(old)
        for position, statement in enumerate(self.out):
            if any(old in named_in(s) for s in walk([statement])):
                self.out[position] = renamed(statement, {old: wish})
        return self.plain(wish)

    def _is_last_use(self, base: str) -> bool:
        """Whether an array was made in this block, and is used by nothing after this statement."""
        owners = [key for key, value in self.names.values.items() if isinstance(value, Array) and value.base == base]
        if len(owners) != 1 or base in self._views or not self._is_made_here(owners[0]):
            return False
        key = owners[0]
        uses = [n for n in ast.walk(self.names.scope.tree) if isinstance(n, ast.Name) and n.id == key]
        lines = [n.lineno for n in uses]
        first = min(uses, key=lambda n: (n.lineno, n.col_offset))
        return max(lines) <= self.line and isinstance(first.ctx, ast.Store)

    def _element(self, target: ast.Subscript, value: Value, node: ast.stmt, op: ast.operator | None = None) -> None:
        owner = self.value(target.value)
        if not isinstance(owner, Array) or not owner.base:
            self.refuse(target, "is no element of an array that can be written to")
        self._writable(owner, node)
        mask = None if isinstance(target.slice, (ast.Slice, ast.Tuple)) else self.value(target.slice)
        if isinstance(mask, Array) and mask.kind == "bool":
            if not isinstance(value, Number):
                self.refuse(node, "assigns an array where a mask is true; write np.where")
            return self._masked(owner, mask, value, node, op)
        place = self.indexed(owner, self.index(target, owner.rank), target, changing=op is not None)
        if isinstance(place, Array) and not place.base and isinstance(value, Array):
            value = self.plain(self.materialise(value, "t"))
        if isinstance(place, Array):
            return self._section(place, value, node, op)
        if not isinstance(value, Number):
            self.refuse(node, "assigns something other than a number to an element")
        self.refuse_sum_of_tests(op, [place, value], node)
        return self.store(place.expr, value, op)

    def _assigned_by_mask(self, target: ast.Subscript, value: ast.expr, node: ast.AST, op: ast.operator | None) -> bool:
        """Read `y[mask] = f(x[mask])`, in which the elements that the mask chooses get values from such elements."""
        text = ast.unparse(target.slice)
        if not any(isinstance(n, ast.Subscript) and ast.unparse(n.slice) == text for n in ast.walk(value)):
            return False
        masked = self.mask_in(target)
        if masked is None or masked[0] is not target.slice:
            return False
        index, mask = masked
        owner = self.array(target.value)
        self._writable(owner, node)
        chosen = self.chosen(value, index)
        if not owner.rank == mask.rank == chosen.rank:
            self.refuse(node, "takes rows by a mask; write np.where")
        if self._overlaps(owner, chosen):
            chosen = self.plain(self.materialise(chosen, "t"))
        self._masked(owner, mask, chosen, node, op)
        return True

    def _masked(self, owner: Array, mask: Array, value: Number | Array, node: ast.AST, op: ast.operator | None) -> None:
        """The assignment of a number, or of elements of the same places, to the elements that a mask chooses."""
        self.refuse_sum_of_tests(op, [owner, value], node)
        if mask.rank > owner.rank:
            self.refuse(node, f"has a mask with {mask.rank} dimensions for an array with {owner.rank}")
        for size, other in zip(owner.dims, mask.dims, strict=False):
            self.agree(size, other, node)
        if mask.rank < owner.rank or self._overlaps(owner, mask):
            mask = self.plain(self.materialise(mask, "mask"))
        if isinstance(value, Array):
            for size, other in zip(owner.dims, value.dims, strict=True):
                self.agree(size, other, node)
        fixed = Number(self.temporary(value.expr, value.kind), value.kind) if isinstance(value, Number) else value

        def assign(at: list[Expr]) -> None:
            with self.collected() as inside:
                each = Number(fixed.element(at), fixed.kind) if isinstance(fixed, Array) else fixed
                self.store(owner.element(at), each, op)
            self.emit(If(mask.element(at[: mask.rank]), inside))

        self.nest(owner.dims, assign)

    def _writable(self, owner: Array, node: ast.AST) -> None:
        if owner.base in self.inputs:
            self.refuse(node, "changes an input in place; write to a copy")
        if owner.base in self.perhaps_same:
            self.refuse(node, "changes an array that may have another name; write `.copy()` where it gets it")

    def _section(self, place: Array, value: Value, node: ast.AST, op: ast.operator | None) -> None:
        self.refuse_sum_of_tests(op, [place, value], node)
        if isinstance(value, Number):
            expr = value.expr if isinstance(value.expr, ast.Constant) else self.temporary(value.expr, value.kind)
            self.fill(place, lambda _: expr, value.kind, op)
            return
        if not isinstance(value, Array):
            self.refuse(node, "assigns something other than numbers")
        offset = place.rank - value.rank
        if offset < 0:
            self.refuse(node, f"assigns {value.rank} dimensions to {place.rank}")
        source = self.plain(self.materialise(value, "t")) if self._overlaps(place, value) else value
        for axis, size in enumerate(value.dims):
            if not is_one(size):
                self.agree(place.dims[offset + axis], size, node)
        self.fill(place, lambda at: source.element(broadcast(at[offset:], source.dims)), value.kind, op)

    def _overlaps(self, place: Array, value: Array) -> bool:
        """Whether an expression reads elements of the array that it is assigned to, other than the assigned one."""
        probe: list[Expr] = [name(f"_{axis}") for axis in range(place.rank)]
        target = text_of(place.element(probe))
        reads = loads_of(value.element(broadcast(probe[place.rank - value.rank :], value.dims)))
        return any(array == place.base and text_of(load(array, index)) != target for array, index in reads)

    def augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            if self._assigned_by_mask(target, node.value, node, node.op):
                return None
            return self._element(target, self.value(node.value), node, node.op)
        if not isinstance(target, ast.Name):
            self.refuse(target, "is neither a variable nor an element of an array")
        before = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        value = self.value(node.value)
        if isinstance(before, Array):
            if not before.base:
                self.refuse(node, "changes something that is no array")
            self._writable(before, node)
            return self._section(before, value, node, node.op)
        return self._bind(target, self.arithmetic(node.op, before, value, node))

    # Helpers

    def helper(self, function: Any, node: ast.Call, alone: bool = False) -> Value:
        """Put the statements of a user's function in the place of its call."""
        source = python_function(function)
        if not hasattr(source, "__code__"):
            text = ast.unparse(node.func)
            self.refuse(node, f"calls {text}, which cannot be derived; make an array, and assign to its elements")
        if source in self.calls or source is self.scope.function:
            self.refuse(node, "is recursive, and cannot be derived; write a loop")
        bound = self.names.scope.arguments_of(node, source)
        bound.apply_defaults()
        names = Names(Scope(source, []))
        self._scopes.append(names)
        start, views = len(self.out), set(self._views)
        for key, value in bound.arguments.items():
            part = self.value(value) if isinstance(value, ast.expr) else self._global(value, node)
            if isinstance(part, Array) and not part.base:
                part = self.plain(self.materialise(part, key))
            elif isinstance(part, Number) and key in names.assigned:
                text = self.number_variable(key, part.kind)
                self.emit(Assign(text, part.expr))
                part = Number(name(text), part.kind)
            elif isinstance(part, Number) and names_of(part.expr) and not isinstance(part.expr, ast.Name):
                part = Number(self.temporary(part.expr, part.kind, key), part.kind)
            elif isinstance(part, Items):
                part = self._lasting(part)
            self._views |= _bases_in(part) - self.unnamed
            names.values[key] = part
            self._made_in[id(names), key] = self.block_number
        outside, self.names = self.names, names
        line, statement, around = self.line, self.statement_read, (self.after, self.before)
        outer, self._outside = self._outside, set(self.variables)
        self.calls.append(source)
        result = self._returned(settled(names.scope.body), alone)
        self.calls.pop()
        variables = self._outside
        self.names, self.line, self.statement_read, self._outside = outside, line, statement, outer
        self.after, self.before = around
        results = result.parts if isinstance(result, Items) else [result]
        bases = [each.base for each in results if isinstance(each, Array)]
        for each in results:  # an array that the helper made has no name here
            if isinstance(each, Array) and each.base not in variables | {""} and bases.count(each.base) == 1:
                self.unnamed |= {each.base} if self.is_whole(each) else set()
        self._views = views | {each.base for each in results if isinstance(each, Array)} - {""} - self.unnamed
        foreign = stored_in(self.out[start:]) - allocated_in(self.out[start:])
        if foreign and not alone:
            self.refuse(
                node, f"changes {sorted(foreign)[0]!r} inside of an expression; call it as a statement of its own"
            )
        return result

    after: Sequence[ast.stmt] = ()
    before: Sequence[ast.stmt] = ()

    def _returned(self, body: list[ast.stmt], alone: bool) -> Value:
        """The statements of a function, and its result."""
        if alone and not any(isinstance(n, ast.Return) for s in body for n in ast.walk(s)):
            self.block(body)
            return Object(None)
        if body and isinstance(body[-1], ast.Return) and body[-1].value is not None:
            self.block(body[:-1])
            self.line, self.statement_read = body[-1].lineno, body[-1]
            return self.value(body[-1].value)
        if not body or not isinstance(body[-1], ast.If):
            self.refuse(self.names.scope.tree, "does not end with `return` in each of its branches, outside of loops")
        self.block(body[:-1])
        last = body[-1]
        self.line, self.statement_read = last.lineno, last
        test = self.test(last.test)
        if isinstance(test, ast.Constant):
            return self._returned(last.body if test.value else last.orelse, alone)
        for raising, other, raises in (
            (last.body, last.orelse, last.test),
            (last.orelse, last.body, ast.UnaryOp(ast.Not(), last.test)),
        ):
            if raising and isinstance(raising[-1], ast.Raise):
                self.statement(ast.copy_location(ast.If(ast.copy_location(raises, last.test), raising, []), last))
                return self._returned(other, alone)
        results: list[list[Value]] = []
        blocks: list[list[Stmt]] = []
        single = True
        before = dict(self.names.values)
        self.branches += 1
        for part in (last.body, last.orelse):
            with self.collected() as block:
                value = self._returned(part, False)
            single = not isinstance(value, Items)
            results.append(value.parts if isinstance(value, Items) else [value])
            blocks.append(block)
            self._forget_since(before)
        if len(results[0]) != len(results[1]):
            self.refuse(last, "returns different numbers of results")
        merged = [self._of_branches(pair, blocks, last) for pair in zip(*results, strict=True)]
        self.branches -= 1
        self.emit(If(test, blocks[0], blocks[1]))
        return merged[0] if single else Items(merged)

    def _of_branches(self, results: Sequence[Value], blocks: list[list[Stmt]], node: ast.stmt) -> Value:
        """One of the results of a function that two branches return; the statements that store it join the blocks."""
        numbers = [each for each in results if isinstance(each, Number)]
        arrays = [each for each in results if isinstance(each, Array)]
        if len(numbers) == 2:
            kind = wider(*(each.kind for each in numbers))
            text = self.number_variable("result", kind)
            for block, each in zip(blocks, numbers, strict=True):
                block.append(Assign(text, each.expr, self.line))
            return Number(name(text), kind)
        if len(arrays) < 2 or arrays[0].rank != arrays[1].rank:
            self.refuse(
                node, "returns a number or an array of another rank from each branch; return arrays of one shape"
            )
        inside = [allocated_in(block) | assigned_in(block) for block in blocks]
        outside = [each.base for each in arrays if each.base in self._outside - {*self.inputs, *self.unnamed}]
        if outside and self.loops:
            self.refuse(node, "returns an array that it was given from a branch; return a copy of it")
        shapes = [[self.resolved(size) for size in array.dims] for array in arrays]
        dims = next(
            (d for d in shapes if not any((names_of(size) | shapes_of(size)) & (inside[0] | inside[1]) for size in d)),
            None,
        )
        if dims is None:
            self.refuse(node, "returns arrays from branches; make the array before them, and assign to its elements")
        kind = wider(*(array.kind for array in arrays))
        dtype = next((array.dtype for array in arrays if array.kind == kind == "float"), None)
        text = self.allocate("result", dims, kind, dtype, "empty")
        for block, array in zip(blocks, arrays, strict=True):
            with self.collected() as stores:
                for one, other in zip(dims, array.dims, strict=True):
                    self.agree(one, other, node)
                self.fill(self.plain(text), array.element, array.kind)
            block += stores
        if outside:
            self.perhaps_same |= {text, *outside}
        return self.new(text)

    # Results

    def _results(self, value: Value, node: ast.AST) -> list[str]:
        parts = value.parts if isinstance(value, Items) else [value]
        results: list[str] = []
        for position, part in enumerate(parts):
            wish = "out" if len(parts) == 1 else f"out{position + 1}"
            if isinstance(part, Number):
                plain = isinstance(part.expr, ast.Name) and part.expr.id not in {*self.settings, *self.loops, *results}
                if plain and isinstance(part.expr, ast.Name):
                    results.append(part.expr.id)
                    continue
                text = self.number_variable(wish, "float")
                self.emit(Assign(text, part.expr))
                results.append(text)
            elif isinstance(part, Array):
                if self.is_whole(part) and part.base not in self.unnamed:
                    has_other_use = part.base in {*self.inputs, *results}
                    results.append(self.materialise(part, wish) if has_other_use else part.base)
                else:
                    results.append(self._named(part, wish).base)
            else:
                self.refuse(node, "returns something other than arrays and numbers")
        return results


class CompleteReader(Reader):
    """Reads a function that is written out for itself, and not to derive it.

    Errors are raised, and NaN is the largest and the smallest number, as in NumPy: a gradient may leave both to the
    forward pass. What cannot be written out is refused.
    """

    def __init__(self, function: Any, specs: Sequence[Any]):
        super().__init__(function, specs)
        self._inside: set[tuple[int, str]] = set()
        """The tests of constant indices, and the block of each."""

    def indexed(self, owner: Array, index: Sequence[Index], node: ast.AST, changing: bool = False) -> Number | Array:
        for part, size in zip((p for p in index if p is not None), owner.dims, strict=False):
            place = constant_int(part.expr) if isinstance(part, Number) else None
            needed = 0 if place is None else place + 1 if place >= 0 else -place
            if needed > 1:
                test = compare(number(needed), ast.LtE(), size)
                key = self.block_number, text_of(test)
                if not is_evident(test) and key not in self._inside:
                    self._inside.add(key)
                    self.guard(test, f"{self.place(node)}: an index lies outside of its array")
        return super().indexed(owner, index, node, changing)

    def type_in(self, value: Value, node: ast.AST) -> tuple[Expr | None, str]:
        type_of, kind = super().type_in(value, node)
        if kind == "float" and isinstance(value, Object) and not isinstance(value.value, ast.expr):
            dtype, widest = (
                np.dtype(value.value),
                max(map(np.dtype, self.float_types.values()), default=np.dtype(float)),
            )
            if dtype.itemsize < widest.itemsize:
                self.refuse(node, f"rounds to {dtype}, which loops do not; write x.dtype, or no type")
        return type_of, kind

    def exceeds(self, element: Expr, op: ast.cmpop, best: Expr, kind: str) -> Expr:
        test = super().exceeds(element, op, best, kind)
        return ast.BoolOp(ast.Or(), [test, compare(element, ast.NotEq(), element)]) if kind == "float" else test

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assert):
            self.refuse(node, 'cannot be written out; write `if ...: raise ValueError("...")`')
        super().statement(node)

    def branch(self, node: ast.If) -> None:
        for block in (node.body, node.orelse):
            if block and isinstance(block[-1], ast.Raise):
                error = block[-1].exc
                args = error.args if isinstance(error, ast.Call) else []
                plain = isinstance(error, ast.Call) and self.names.scope.meaning(error.func) is ValueError
                if not plain or block is node.orelse or not all(isinstance(a, ast.Constant) for a in args):
                    self.refuse(block[-1], 'cannot be written out; write `if ...: raise ValueError("...")`')
        super().branch(node)


def is_plain(value: Any) -> bool:
    """Whether a setting can be written in source: None, text, a number, or a tuple of these."""
    return (
        value is None
        or isinstance(value, (str, int, float))
        or (isinstance(value, tuple) and all(map(is_plain, value)))
    )


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


def _multiplies(statement: Assign) -> bool:
    """Whether a statement assigns to a number its product with one that is of no array, where NumPy's wrap around."""
    value = statement.value
    is_product = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)
    return is_product and statement.name in names_of(value) and not loads_of(value)


def _bases_in(value: Value) -> set[str]:
    """The arrays that a tuple holds, or parts of them."""
    if isinstance(value, Items):
        return set[str]().union(*map(_bases_in, value.parts))
    return {value.base} if isinstance(value, Array) else set()


def _is_variable(value: Value) -> bool:
    return isinstance(value, Number) and isinstance(value.expr, ast.Name)
