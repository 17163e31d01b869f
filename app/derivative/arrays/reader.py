"""Reads the source of a function on arrays into the small language, or refuses it with the line and what to write.

Views are replaced by what they stand for, whole-array expressions by loops, and the user's own helpers by their
statements. Shapes that have to agree, and slices that have to lie inside, are guarded where this is not evident.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.derivative.arrays.core import (
    Assign,
    For,
    Function,
    Guard,
    If,
    Stmt,
    Store,
    Variable,
    While,
    allocated_in,
    assigned_in,
    compare,
    loads_of,
    names_of,
    parts_of,
    shapes_of,
    stored_in,
    text_of,
    walk,
)
from app.derivative.arrays.statements import StatementReader, settled
from app.derivative.arrays.values import TYPES, Array, Items, Names, Number, Object, Value, bases_in, kind_of, wider
from app.derivative.scope import Scope
from app.derivative.terms import name, number
from app.functions import python_function
from app.ops.spec import stretched

_RESERVED = {"np", "math", "max", "min", "abs", "int", "float", "bool", "range", "len", "round", "pow", "ValueError"}


class Reader(StatementReader):
    """Reads one function."""

    def __init__(self, function: Any, specs: Sequence[Any]):
        super().__init__(function)
        self._scopes = [self.names]
        self._outside: set[str] = set()
        """While a helper is read, the variables of the functions that call it."""
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
            self._views |= bases_in(part) - self.unnamed
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


def is_plain(value: Any) -> bool:
    """Whether a setting can be written in source: None, text, a number, or a tuple of these."""
    return (
        value is None
        or isinstance(value, (str, int, float))
        or (isinstance(value, tuple) and all(map(is_plain, value)))
    )


def _multiplies(statement: Assign) -> bool:
    """Whether a statement assigns to a number its product with one that is of no array, where NumPy's wrap around."""
    value = statement.value
    is_product = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)
    return is_product and statement.name in names_of(value) and not loads_of(value)
