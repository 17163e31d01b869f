"""From a function on arrays to one on single numbers, or the line that prevents it.

The compiled engine calls the function on numbers inside its loops. It is made in one walk through the source, which
recognises two elementwise forms. Arithmetic on whole arrays:

    return np.where(x > 0, x, x * 0.1)          becomes     return x if x > 0 else x * 0.1

And loops over all elements, in which each iteration reads and writes only the elements at its own index, and writes
only to new arrays:

    y = np.empty_like(x)                                    y = x if x > 0 else 0.1 * x
    for i in range(x.size):                     becomes     return y
        y.flat[i] = x.flat[i] if ...

Any other function is called on arrays.
"""

from __future__ import annotations

import ast
import builtins
import copy
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from app.custom.for_numba import NOT_OF_NUMBA, OWN, ValueOf, call_own, compiled_tree, dividing_as, is_one_of, meaning
from app.derivative.powers import make_float_powers
from app.derivative.terms import with_parts
from app.functions import function_beside, python_function, unused
from app.reading import UnreadableSourceError, definition_of, one_thread_at_a_time, place_of, variables_around

_numbers = count(1)
_NUMBERS = (int, float, bool, np.generic)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd)
_IN_LOOPS = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call)
_FUNCTIONS = (
    *(abs, min, max, float, int, bool, range, np.float32, np.float64, np.clip),
    *filter(callable, vars(math).values()),
)
"""Functions of numbers that may be called inside a loop, in addition to NumPy's elementwise ones."""
_NEW = {"empty_like": None, "zeros_like": 0, "ones_like": 1}
"""NumPy's functions that make a new array, with the number that fills it."""


@one_thread_at_a_time
def on_numbers(function: Any) -> tuple[Callable[..., Any] | None, int | None]:
    """The function for single numbers, if the source shows that the function is elementwise, else None; and the number
    of axes that its arrays must have, or None for any number.
    """
    walk = _walk_through(function)
    if walk is None or walk.result is None:
        return None, None
    own = call_own(walk.result, walk.value_of, NOT_OF_NUMBA if walk.loops else OWN)
    if not walk.loops:
        return compiled_tree(function, walk.result, own), None
    *statements, last = walk.result.body
    walk.result.body = [*statements, _with_types(last, walk)]
    return dividing_as(function, compiled_tree(function, walk.result, {**own, walk.name_of_type: type})), walk.axes


def _with_types(last: ast.stmt, walk: _Walk) -> ast.stmt:
    """The `return` of new arrays as one of numbers that have the types of these arrays."""
    assert isinstance(last, ast.Return)
    names = [part.id for part in _returned(last) if isinstance(part, ast.Name)]
    typed = ", ".join(f"{walk.name_of_type}({walk.like[name]})({name})" for name in names)
    return ast.copy_location(ast.parse(f"return {typed}").body[0], last)


def written_on_numbers(function: Any) -> tuple[FunctionType | None, int | None]:
    """The function for single numbers with a source that can be read, in which numbers are not given the types of
    arrays; and the number of axes, as in `on_numbers`."""
    walk = _walk_through(function)
    if walk is None or walk.result is None:
        return None, None
    tree, source = walk.result, python_function(function)
    tree.decorator_list, tree.returns = [], None
    arguments = [ast.arg(a.arg) for a in (*tree.args.posonlyargs, *tree.args.args)]
    tree.args = ast.arguments([], arguments, None, [], [], None, [])
    _Untyped().visit(tree)
    result = function_beside(source, tree, {}, f"<{tree.name} {next(_numbers)}, on numbers, of {place_of(source)}>")
    result.__defaults__ = source.__defaults__
    return result, walk.axes


class _Untyped(ast.NodeTransformer):
    """Writes an element of a new array, `type(x)(value)`, as the value."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Call):
            return node
        (value,) = node.args
        if isinstance(value, ast.Constant):  # 0 or 1
            return ast.copy_location(ast.Constant(float(str(value.value))), value)
        return value


def stops_on_numbers(function: Any) -> tuple[int, str] | None:
    """The first line that prevents `on_numbers`, and its source; None if nothing does."""
    walk = _walk_through(function)
    return walk.stop if walk is not None else None


@one_thread_at_a_time
def _walk_through(function: Any) -> _Walk | None:
    """The walk through a function, with its result or where it stopped; None if the source cannot be read."""
    parsed = parse(function)
    if parsed is None:
        return None
    walk = _Walk(*parsed)
    try:
        walk.result = walk.on_numbers()
    except _StopError as stop:
        walk.stop = stop.node.lineno, ast.unparse(stop.node).partition("\n")[0]
    except RecursionError:
        walk.stop = walk.tree.lineno, "an expression that is nested too deeply"
    return walk


# Reading


def parse(function: Any) -> tuple[ast.FunctionDef, ValueOf] | None:
    """The tree of a function, and the values of names that it does not define; None if its source cannot be read."""
    function = python_function(function)
    if not isinstance(function, FunctionType):
        return None
    try:
        tree, around = definition_of(function), variables_around(function)
    except UnreadableSourceError:
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs:
        return None
    names = {**vars(builtins), **around}
    return tree, names.get


def _is_name_of(node: ast.AST | None, names: Iterable[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _returned(statement: ast.Return) -> list[ast.expr | None]:
    """The values that a function returns."""
    return [*statement.value.elts] if isinstance(statement.value, ast.Tuple) else [statement.value]


def _statements(tree: ast.FunctionDef) -> list[ast.stmt]:
    """A function's statements after its docstring."""
    return tree.body[1:] if ast.get_docstring(tree, clean=False) is not None else tree.body


# The walk


class _StopError(Exception):
    """The source at `node` may need more than one element."""

    def __init__(self, node: ast.stmt | ast.expr):
        super().__init__()
        self.node = node


class _Walk:
    """The walk through one function."""

    def __init__(self, tree: ast.FunctionDef, value_of: ValueOf):
        self.tree, self.value_of = tree, value_of
        names = [argument.arg for argument in tree.args.args]
        self.settings = set(names[len(names) - len(tree.args.defaults) :])
        self.arguments = set(names)
        self.inputs = self.arguments - self.settings
        make_float_powers(tree, self.inputs)
        self.loops = any(isinstance(statement, ast.For) for statement in tree.body)
        self.result: ast.FunctionDef | None = None
        """The tree of the function for single numbers."""
        self.stop: tuple[int, str] | None = None
        """The line that prevents it, and its source."""
        self.like: dict[str, str] = {}
        """For each new array, the input whose type it has."""
        self.written: set[str] = set()
        """The new arrays of which every element is certain to be written."""
        self.axes: int | None = None
        """How many axes the arrays must have; None for any number."""

    def on_numbers(self) -> ast.FunctionDef:
        """The tree of the function for single numbers."""
        tree = copy.copy(self.tree)
        tree.body = self._with_loops() if self.loops else self._arithmetic()
        return tree

    @property
    def name_of_type(self) -> str:
        """The name of the variable `type`, which new arrays need."""
        return unused("type", {part.id for part in ast.walk(self.tree) if isinstance(part, ast.Name)} | self.arguments)

    # Arithmetic on whole arrays

    def _arithmetic(self) -> list[ast.stmt]:
        names = self.inputs | self.settings
        depending = set(names)
        statements: list[ast.stmt] = []
        for statement in _statements(self.tree):
            changed = copy.copy(statement)
            statements.append(changed)
            if isinstance(changed, ast.Return):
                parts = [self._whole_value(part, names, statement) for part in _returned(changed)]
                if not all(_mentions(part, depending) for part in _returned(changed)):
                    raise _StopError(statement)
                changed.value = ast.Tuple(parts, ast.Load()) if isinstance(changed.value, ast.Tuple) else parts[0]
                return statements
            if not (isinstance(changed, ast.Assign) and len(changed.targets) == 1):
                raise _StopError(statement)
            target, depends = changed.targets[0], _mentions(changed.value, depending)
            if not isinstance(target, ast.Name):
                raise _StopError(statement)
            changed.value = self._whole_value(changed.value, names, statement)
            names.add(target.id)
            if depends:
                depending.add(target.id)
            else:
                depending.discard(target.id)
        raise _StopError(self.tree)

    def _whole_value(self, node: ast.expr | None, names: set[str], statement: ast.stmt) -> ast.expr:
        """An elementwise expression on arrays as one on single numbers.

        `np.where` becomes a conditional expression, because Numba makes arrays for it even of numbers.
        """

        def value(part: ast.expr) -> ast.expr:
            return self._whole_value(part, names, statement)

        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node
        if isinstance(node, ast.Name) and (node.id in names or isinstance(self.value_of(node.id), _NUMBERS)):
            return node
        if isinstance(node, ast.Attribute) and isinstance(meaning(node, self.value_of), _NUMBERS):
            return node
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) and isinstance(node.op, _ARITHMETIC):
            return ast.copy_location(with_parts(node, value), node)
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            return ast.copy_location(with_parts(node, value), node)
        if isinstance(node, ast.Call) and not node.keywords:
            function, args = meaning(node.func, self.value_of), [value(part) for part in node.args]
            if function is np.where and len(args) == 3:
                return ast.copy_location(ast.IfExp(*args), node)
            if _is_elementwise(function, len(args)):
                return ast.copy_location(ast.Call(node.func, args, []), node)
        raise _StopError(statement)

    # Loops over elements

    def _with_loops(self) -> list[ast.stmt]:
        *statements, last = _statements(self.tree)
        changed: list[ast.stmt] = []
        for statement in statements:
            changed += self._loop(statement) if isinstance(statement, ast.For) else self._new_array(statement)
        if not (isinstance(last, ast.Return) and all(_is_name_of(part, self.written) for part in _returned(last))):
            raise _StopError(last)
        return [*changed, last]

    @property
    def _arrays(self) -> set[str]:
        return {*self.inputs, *self.like}

    def _new_array(self, statement: ast.stmt) -> list[ast.stmt]:
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            raise _StopError(statement)
        target, call = statement.targets[0], statement.value
        function = meaning(call.func, self.value_of) if isinstance(call, ast.Call) else None
        made_by = next((name for name in _NEW if function is getattr(np, name)), None)
        if made_by is None or not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
            raise _StopError(statement)
        source = call.args[0]
        if not (isinstance(target, ast.Name) and isinstance(source, ast.Name) and source.id in self._arrays):
            raise _StopError(statement)
        if target.id in self._arrays:
            raise _StopError(statement)
        like = source.id if source.id in self.inputs else self.like[source.id]
        self.like[target.id] = like
        if _NEW[made_by] is None:
            return []
        self.written.add(target.id)
        return ast.parse(f"{target.id} = {self.name_of_type}({like})({_NEW[made_by]})").body

    def _loop(self, loop: ast.For) -> list[ast.stmt]:
        """A loop over all elements, or nested loops over the axes."""
        place = [_target(loop)]
        whole = self._extent(loop) == "size"
        if not whole and self._extent(loop) != 0:
            raise _StopError(loop)
        inner = loop.body
        while not whole and len(inner) == 1 and isinstance(inner[0], ast.For) and self._extent(inner[0]) == len(place):
            place.append(_target(inner[0]))
            inner = inner[0].body
        axes = None if whole else len(place)
        names = [*place, *self._arrays, *self.settings]
        if len(set(names)) < len(names) or (axes and self.axes not in (None, axes)):
            raise _StopError(loop)
        self.axes = self.axes or axes
        return _Turn(self, place, whole).block(inner, set(), self.written)

    def _extent(self, loop: ast.For) -> int | str | None:
        """What a loop goes over: the 'size' of an array, or the number of an axis."""
        call = loop.iter
        if loop.orelse or not (isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords):
            return None
        if not (isinstance(call.func, ast.Name) and self.value_of(call.func.id) is range):
            return None
        extent = ast.unparse(call.args[0])
        for name in self._arrays:
            if extent == f"{name}.size":
                return "size"
            if extent == f"len({name})":
                return 0
            axis = extent.removeprefix(f"{name}.shape[").removesuffix("]")
            if axis != extent and axis.isdecimal():
                return int(axis)
        return None


class _Turn:
    """One iteration of a loop, on the elements at one index. No name may be read before it was written."""

    def __init__(self, walk: _Walk, place: Sequence[str], whole: bool):
        self.walk, self.place, self.whole = walk, list(place), whole
        self.reserved = {*walk.inputs, *walk.like, *walk.settings, *place}

    def block(self, statements: Sequence[ast.stmt], local: set[str], written: set[str]) -> list[ast.stmt]:
        """Statements about one element. The names and arrays that are certain to be written are added to the sets."""
        return [self._statement(statement, local, written) for statement in statements]

    def _statement(self, node: ast.stmt, local: set[str], written: set[str]) -> ast.stmt:
        changed = copy.copy(node)
        if isinstance(changed, ast.If):
            changed.test = self._value(changed.test, local)
            sides = [(set(local), set(written)), (set(local), set(written))]
            changed.body = self.block(changed.body, *sides[0])
            changed.orelse = self.block(changed.orelse, *sides[1])
            local |= sides[0][0] & sides[1][0]
            written |= sides[0][1] & sides[1][1]
        elif isinstance(changed, ast.For) and not changed.orelse:
            changed.iter = self._value(changed.iter, local)
            changed.body = self.block(changed.body, {*local, self._local(changed.target)}, set(written))
        elif isinstance(changed, ast.AugAssign) and _is_name_of(changed.target, local):
            changed.value = self._value(changed.value, local)
        elif isinstance(changed, ast.AugAssign) and isinstance(changed.op, _ARITHMETIC):
            return self._updated(changed, local, written)
        elif isinstance(changed, ast.Assign) and len(changed.targets) == 1:
            changed.value = self._value(changed.value, local)
            changed.targets = [self._written(changed.targets[0], local, written)]
        else:
            raise _StopError(node)
        return changed

    def _updated(self, node: ast.AugAssign, local: set[str], written: set[str]) -> ast.stmt:
        """`y[i] += value`, where `y[i]` was written before. As in the array, it is rounded before and after."""
        name = self._element(node.target, written) if isinstance(node.target, ast.Subscript) else _stop(node)
        typed = f"{self.walk.name_of_type}({self.walk.like[name]})"
        total = ast.BinOp(_expression(f"{typed}({name})"), node.op, self._value(node.value, local))
        rounded = ast.Call(_expression(typed), [total], [])
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], rounded), node)

    def _local(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name) or target.id in self.reserved:
            raise _StopError(target)
        return target.id

    def _written(self, target: ast.expr, local: set[str], written: set[str]) -> ast.expr:
        if isinstance(target, ast.Subscript):
            name = self._element(target, self.walk.like)
            written.add(name)
            return ast.Name(name, ast.Store())
        local.add(self._local(target))
        return target

    def _value(self, node: ast.expr, local: set[str]) -> ast.expr:
        """An expression of elements of inputs, of names that were written, and of numbers."""
        if isinstance(node, ast.Subscript):
            return ast.Name(self._element(node, self.walk.inputs), ast.Load())
        if isinstance(node, (ast.Name, ast.Attribute)):
            if not _is_name_of(node, local) and not self._is_plain(node):
                raise _StopError(node)
            return node
        if not isinstance(node, _IN_LOOPS) or getattr(node, "keywords", None):
            raise _StopError(node)
        return ast.copy_location(with_parts(node, lambda part: self._value(part, local)), node)

    def _is_plain(self, node: ast.expr) -> bool:
        """Whether it is a number, or a function of numbers without side effects."""
        if isinstance(node, ast.Name) and node.id in self.reserved:
            return node.id in self.walk.settings
        value = meaning(node, self.walk.value_of)
        return isinstance(value, (*_NUMBERS, np.ufunc)) or is_one_of(value, _FUNCTIONS)

    def _element(self, node: ast.Subscript, arrays: Iterable[str]) -> str:
        """The array whose element at this iteration's index it is: x.flat[i], or x[i, j]."""
        array = node.value
        if self.whole:
            array = array.value if isinstance(array, ast.Attribute) and array.attr == "flat" else _stop(node)
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        here = [part.id for part in index if isinstance(part, ast.Name)] == self.place and len(index) == len(self.place)
        return array.id if here and isinstance(array, ast.Name) and array.id in arrays else _stop(node)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _stop(node: ast.stmt | ast.expr) -> NoReturn:
    raise _StopError(node)


def _target(loop: ast.For) -> str:
    return loop.target.id if isinstance(loop.target, ast.Name) else _stop(loop)


def _mentions(node: ast.AST | None, names: set[str]) -> bool:
    return node is not None and any(_is_name_of(part, names) for part in ast.walk(node))


def _is_elementwise(function: Any, count: int) -> bool:
    if isinstance(function, np.ufunc):
        return function.nout == 1 and function.nin == count and function.signature is None
    return is_one_of(function, (np.float32, np.float64)) or (function is np.clip and count == 3)
