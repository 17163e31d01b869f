"""Loops over all elements of arrays as statements about one element.

    y = np.empty_like(x)                        y = x if x > 0 else 0.1 * x
    for i in range(x.size):             is      return y
        y.flat[i] = x.flat[i] if ...

Each turn may read elements of its own place alone, and write those of new arrays; so turns can be taken in any order.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

import numpy as np

from app.custom.proofs.reading import (
    MATH,
    NUMBERS,
    Known,
    are_names_of,
    body,
    is_name_of,
    is_one_of,
    meaning,
    new_array,
    parameters,
    returned,
)

_FUNCTIONS = (abs, min, max, float, int, bool, range, np.float32, np.float64, *MATH)
_EXPRESSIONS = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call)
_FILLED = {"zeros_like": 0, "ones_like": 1}


class UnprovenError(Exception):
    """What stands at `node` may need more than one element."""

    def __init__(self, node: ast.stmt | ast.expr):
        super().__init__()
        self.node = node


def on_one_element(tree: ast.FunctionDef, known: Known) -> tuple[ast.FunctionDef, int | None]:
    """A function made for one element, and how many axes the arrays must have (None: any number)."""
    return _Function(tree, known).on_one_element()


class _Function:
    """A function of new arrays and loops that fill them, on its way to be one about single elements."""

    def __init__(self, tree: ast.FunctionDef, known: Known):
        self.tree, self.known = tree, known
        settings = {argument.arg for argument in tree.args.args[len(tree.args.args) - len(tree.args.defaults) :]}
        self.given, self.settings = parameters(tree) - settings, settings
        self.like: dict[str, str] = {}
        """For each new array, the one that was given whose type it has."""
        self.written: set[str] = set()
        """The new arrays of which every element was surely written."""
        self.axes: int | None = None

    @property
    def arrays(self) -> set[str]:
        return {*self.given, *self.like}

    def on_one_element(self) -> tuple[ast.FunctionDef, int | None]:
        *statements, last = body(self.tree)
        made: list[ast.stmt] = []
        for statement in statements:
            made += self._loop(statement) if isinstance(statement, ast.For) else self._new_array(statement)
        if not (isinstance(last, ast.Return) and are_names_of(returned(last), self.written)):
            raise UnprovenError(last)
        tree = copy.copy(self.tree)
        tree.body = [*made, last]
        return tree, self.axes

    def _new_array(self, statement: ast.stmt) -> list[ast.stmt]:
        found = new_array(statement, self.arrays, self.known)
        if found is None:
            raise UnprovenError(statement)
        name, source, made_by = found
        self.like[name] = source if source in self.given else self.like[source]
        if made_by not in _FILLED:
            return []
        self.written.add(name)
        return ast.parse(f"{name} = type({self.like[name]})({_FILLED[made_by]})").body

    def _loop(self, loop: ast.For) -> list[ast.stmt]:
        """A loop over all elements, or loops over each axis inside each other."""
        place = [_target(loop)]
        whole = self._extent(loop) == "size"
        if not whole and self._extent(loop) != 0:
            raise UnprovenError(loop)
        inner = loop.body
        while not whole and len(inner) == 1 and isinstance(inner[0], ast.For) and self._extent(inner[0]) == len(place):
            place.append(_target(inner[0]))
            inner = inner[0].body
        axes = None if whole else len(place)
        taken = [*place, *self.arrays, *self.settings]
        if len(set(taken)) < len(taken) or (axes and self.axes not in (None, axes)):
            raise UnprovenError(loop)
        self.axes = self.axes or axes
        return _Turn(self, place, whole).block(inner, set(), self.written)

    def _extent(self, loop: ast.For) -> int | str | None:
        """What a loop goes over: the 'size' of an array, or an axis of it, by its number."""
        call = loop.iter
        if loop.orelse or not (isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords):
            return None
        if not (isinstance(call.func, ast.Name) and self.known(call.func.id) is range):
            return None
        extent = ast.unparse(call.args[0])
        for name in self.arrays:
            if extent == f"{name}.size":
                return "size"
            if extent == f"len({name})":
                return 0
            axis = extent.removeprefix(f"{name}.shape[").removesuffix("]")
            if axis != extent and axis.isdecimal():
                return int(axis)
        return None


def _target(loop: ast.For) -> str:
    if not isinstance(loop.target, ast.Name):
        raise UnprovenError(loop)
    return loop.target.id


class _Turn:
    """One turn of a loop: what it does with the elements at one place. No name is read before it was written."""

    def __init__(self, function: _Function, place: Sequence[str], whole: bool):
        self.function, self.place, self.whole = function, list(place), whole
        self.taken = {*function.arrays, *function.settings, *place}

    def block(self, statements: Sequence[ast.stmt], local: set[str], written: set[str]) -> list[ast.stmt]:
        """Statements about one element. `local` and `written` hold the names and arrays surely written; they grow."""
        return [self._statement(statement, local, written) for statement in statements]

    def _statement(self, node: ast.stmt, local: set[str], written: set[str]) -> ast.stmt:
        made = copy.copy(node)
        if isinstance(made, ast.If):
            made.test = self._value(made.test, local)
            sides = [(set(local), set(written)), (set(local), set(written))]
            made.body = self.block(made.body, *sides[0])
            made.orelse = self.block(made.orelse, *sides[1])
            local |= sides[0][0] & sides[1][0]
            written |= sides[0][1] & sides[1][1]
        elif isinstance(made, ast.For) and not made.orelse:
            made.iter = self._value(made.iter, local)
            made.body = self.block(made.body, {*local, self._local(made.target)}, set(written))
        elif isinstance(made, ast.AugAssign) and is_name_of(made.target, local):
            made.value = self._value(made.value, local)
        elif isinstance(made, ast.Assign) and len(made.targets) == 1:
            made.value = self._value(made.value, local)
            made.targets = [self._written(made.targets[0], local, written)]
        else:
            raise UnprovenError(node)
        return made

    def _local(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name) or target.id in self.taken:
            raise UnprovenError(target)
        return target.id

    def _written(self, target: ast.expr, local: set[str], written: set[str]) -> ast.expr:
        if isinstance(target, ast.Subscript):
            name = self._element(target, set(self.function.like))
            written.add(name)
            return ast.Name(name, ast.Store())
        local.add(self._local(target))
        return target

    def _value(self, node: ast.expr, local: set[str]) -> ast.expr:
        """An expression of elements that were given, of names that were written, and of numbers."""
        if isinstance(node, ast.Subscript):
            return ast.Name(self._element(node, self.function.given), ast.Load())
        if isinstance(node, (ast.Name, ast.Attribute)):
            if not is_name_of(node, local) and not self._is_plain(node):
                raise UnprovenError(node)
            return node
        if not isinstance(node, _EXPRESSIONS) or getattr(node, "keywords", None):
            raise UnprovenError(node)
        made = copy.copy(node)
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(made, field, self._value(value, local))
            elif isinstance(value, list):
                parts = [self._value(part, local) if isinstance(part, ast.expr) else part for part in value]
                setattr(made, field, parts)
        return made

    def _is_plain(self, node: ast.expr) -> bool:
        """Whether it is a number, or a function of numbers that does nothing else."""
        if isinstance(node, ast.Name) and node.id in self.taken:
            return node.id in self.function.settings
        value = meaning(node, self.function.known)
        return isinstance(value, (*NUMBERS, np.ufunc)) or is_one_of(value, _FUNCTIONS)

    def _element(self, node: ast.Subscript, arrays: set[str]) -> str:
        """The array whose element at this turn's place it is: x.flat[i], or x[i, j]."""
        array = node.value
        if self.whole and isinstance(array, ast.Attribute) and array.attr == "flat":
            array = array.value
        elif self.whole:
            raise UnprovenError(node)
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        here = [part.id for part in index if isinstance(part, ast.Name)] == self.place and len(index) == len(self.place)
        if not (here and isinstance(array, ast.Name) and array.id in arrays):
            raise UnprovenError(node)
        return array.id
