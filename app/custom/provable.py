"""What the source of a function on arrays proves: that it works number by number, or row by row.

An engine may then call it on single numbers inside a loop, or on a part of the batch. The proof is of a small part
of Python only; a function that goes beyond it is taken as it is, and may be declared `row_by_row`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd)
_ALIKE = ("empty_like", "zeros_like", "ones_like")
_NUMBERS = (int, float, bool, np.generic)


def on_numbers(function: Any) -> Callable[..., Any] | None:
    """The function for single numbers, where it is arithmetic and NumPy's elementwise functions alone; else None."""
    parsed = _parse(function)
    if parsed is None or not _works_on_numbers(*parsed):
        return None
    tree, known = parsed
    tree = _Choosing(known).visit(tree)
    tree.decorator_list, tree.args.defaults, tree.returns = [], [], None
    for argument in tree.args.args:
        argument.annotation = None
    source = getattr(function, "py_func", function)
    names = {**source.__globals__, **inspect.getclosurevars(source).nonlocals}
    exec(compile(ast.fix_missing_locations(ast.Module([tree], [])), source.__code__.co_filename, "exec"), names)
    made: FunctionType = names[tree.name]
    made.__defaults__ = source.__defaults__
    return made


class _Choosing(ast.NodeTransformer):
    """np.where of single numbers, which Numba makes arrays for, becomes Python's own choice between two values."""

    def __init__(self, known: Callable[[str], Any]):
        self._known = known

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return ast.IfExp(*node.args) if _meaning(node.func, self._known) is np.where else node


def stops_on_numbers(function: Any) -> tuple[int, str] | None:
    """The first line that goes beyond what `on_numbers` proves, and what stands there; None where nothing does."""
    parsed = _parse(function)
    if parsed is None:
        return None
    found = _beyond_numbers(*parsed)
    if found is None:
        return None
    first: int = getattr(function, "py_func", function).__code__.co_firstlineno
    return first + found.lineno - 1, ast.unparse(found).partition("\n")[0]


def _works_on_numbers(tree: ast.FunctionDef, known: Callable[[str], Any]) -> bool:
    return _beyond_numbers(tree, known) is None


def _beyond_numbers(tree: ast.FunctionDef, known: Callable[[str], Any]) -> ast.stmt | None:
    """The first statement that is no arithmetic on numbers."""
    names = {a.arg for a in tree.args.args}
    for statement in _body(tree):
        if isinstance(statement, ast.Return):
            returned = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
            fits = all(_is_elementwise(part, names, known) and _mentions(part, names) for part in returned)
            return None if fits else statement
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            return statement
        target = statement.targets[0]
        if not (isinstance(target, ast.Name) and _is_elementwise(statement.value, names, known)):
            return statement
        if _mentions(statement.value, names):
            names.add(target.id)
    return tree


def works_row_by_row(function: Any) -> bool:
    """Whether a function on arrays of one shape fills new ones like them in loops that look at one row at a time."""
    parsed = _parse(function)
    if parsed is None:
        return False
    tree, known = parsed
    arrays = {a.arg for a in tree.args.args}
    body = _body(tree)
    if not body or not isinstance(body[-1], ast.Return):
        return False
    for statement in body[:-1]:
        if isinstance(statement, ast.For):
            if not _is_row_loop(statement, arrays, known):
                return False
        elif _is_new_array(statement, arrays, known):
            arrays.add(statement.targets[0].id)  # type: ignore[attr-defined]
        else:
            return False
    value = body[-1].value
    returned = value.elts if isinstance(value, ast.Tuple) else [value]
    made = arrays - {a.arg for a in tree.args.args}
    return all(isinstance(part, ast.Name) and part.id in made for part in returned)


def _parse(function: Any) -> tuple[ast.FunctionDef, Callable[[str], Any]] | None:
    """The tree of a function, and what the names mean that it does not define; None where there is no source."""
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        outside = inspect.getclosurevars(function)
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef) or tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs:
        return None
    names = {**vars(builtins), **outside.globals, **outside.nonlocals}
    return tree, names.get


def _body(tree: ast.FunctionDef) -> list[ast.stmt]:
    """A function's statements after its docstring."""
    first = tree.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return tree.body[1:] if documented else tree.body


def _mentions(node: ast.AST | None, names: set[str]) -> bool:
    return node is not None and any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


# Number by number


def _is_elementwise(node: ast.AST | None, names: set[str], known: Callable[[str], Any]) -> bool:
    """Whether an expression means for arrays, element by element, what it means for single numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.Name):
        return node.id in names or isinstance(known(node.id), _NUMBERS)
    if isinstance(node, ast.Attribute):
        return isinstance(_meaning(node, known), _NUMBERS)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
        return isinstance(node.op, _ARITHMETIC) and all(_is_elementwise(part, names, known) for part in parts)
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        return len(parts) == 2 and all(_is_elementwise(part, names, known) for part in parts)
    if isinstance(node, ast.Call):
        given = len(node.args)
        return (
            not node.keywords
            and _is_elementwise_function(_meaning(node.func, known), given)
            and all(_is_elementwise(part, names, known) for part in node.args)
        )
    return False


def _is_elementwise_function(function: Any, given: int) -> bool:
    if isinstance(function, np.ufunc):
        return function.nout == 1 and function.nin == given and function.signature is None
    return (function is np.where and given == 3) or function in (np.float32, np.float64)


def _meaning(node: ast.AST, known: Callable[[str], Any]) -> Any:
    """What a name, or an attribute of a module that has a name, stands for."""
    if isinstance(node, ast.Name):
        return known(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and inspect.ismodule(known(node.value.id)):
        return getattr(known(node.value.id), node.attr, None)
    return None


# Row by row


def _is_new_array(statement: ast.stmt, arrays: set[str], known: Callable[[str], Any]) -> bool:
    """Whether a statement gives a new name to a new array that is like one of those known."""
    if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
        return False
    target, call = statement.targets[0], statement.value
    made_by = _meaning(call.func, known)
    return (
        len(statement.targets) == 1
        and isinstance(target, ast.Name)
        and target.id not in arrays
        and any(made_by is getattr(np, name) for name in _ALIKE)
        and len(call.args) == 1
        and not call.keywords
        and isinstance(call.args[0], ast.Name)
        and call.args[0].id in arrays
    )


def _is_row_loop(loop: ast.For, arrays: set[str], known: Callable[[str], Any]) -> bool:
    """Whether a loop goes over the rows, or all elements, of arrays and touches nothing but those of its turn."""
    whole = _range_of(loop.iter, arrays)
    if whole is None or not isinstance(loop.target, ast.Name) or loop.target.id in arrays or loop.orelse:
        return False
    return known("range") is range and _Turn(arrays, loop.target.id, whole, known).allows(loop.body, set())


def _range_of(call: ast.AST, arrays: set[str]) -> str | None:
    """What `range` goes over: 'flat' for the size of an array, 'rows' for its first axis."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
        return None
    if len(call.args) != 1 or call.keywords:
        return None
    extent = ast.unparse(call.args[0])
    for name in arrays:
        if extent == f"{name}.size":
            return "flat"
        if extent in (f"{name}.shape[0]", f"len({name})"):
            return "rows"
    return None


class _Turn:
    """One turn of a loop over rows: what it may do. It may not read a name before it wrote it."""

    def __init__(self, arrays: set[str], row: str, whole: str, known: Callable[[str], Any]):
        self.arrays, self.row, self.whole, self.known = arrays, row, whole, known

    def allows(self, statements: list[ast.stmt], local: set[str]) -> bool:
        """Whether statements keep to the row. `local` holds the names that were surely written, and grows."""
        return all(self._allows(statement, local) for statement in statements)

    def _allows(self, statement: ast.stmt, local: set[str]) -> bool:
        if isinstance(statement, ast.If):
            inside = self.allows(statement.body, set(local)) and self.allows(statement.orelse, set(local))
            return self._reads(statement.test, local) and inside
        if isinstance(statement, ast.For):
            target = statement.target
            if not (isinstance(target, ast.Name) and self._is_free(target.id)) or statement.orelse:
                return False
            return self._reads(statement.iter, local) and self.allows(statement.body, {*local, target.id})
        if isinstance(statement, ast.AugAssign):
            return self._reads(statement.target, local) and self._reads(statement.value, local)
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            return False
        target = statement.targets[0]
        if not self._reads(statement.value, local):
            return False
        if isinstance(target, ast.Name) and self._is_free(target.id):
            local.add(target.id)
            return True
        return isinstance(target, ast.Subscript) and self._is_in_row(target, local)

    def _is_free(self, name: str) -> bool:
        return name not in self.arrays and name != self.row

    def _reads(self, node: ast.AST, local: set[str]) -> bool:
        """Whether an expression is made of elements of the row and of numbers."""
        if isinstance(node, ast.Subscript):
            return self._is_in_row(node, local) or self._is_inner_extent(node)
        if isinstance(node, ast.Name):
            value = self.known(node.id)
            plain = isinstance(value, _NUMBERS) or value in (range, abs, min, max, float, int)
            return node.id in local or (self._is_free(node.id) and plain)
        if isinstance(node, ast.Attribute):
            return isinstance(_meaning(node, self.known), (*_NUMBERS, np.ufunc))
        if isinstance(node, ast.Call):
            return not node.keywords and all(self._reads(part, local) for part in (node.func, *node.args))
        allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop)
        if not isinstance(node, (*allowed, ast.boolop, ast.cmpop, ast.expr_context)):
            return False
        return all(self._reads(child, local) for child in ast.iter_child_nodes(node))

    def _is_in_row(self, node: ast.Subscript, local: set[str]) -> bool:
        """x[i, j], or x.flat[i] in a loop over all elements."""
        if self.whole == "flat":
            value = node.value
            flat = isinstance(value, ast.Attribute) and value.attr == "flat"
            return flat and self._is_array(value.value) and self._is_row(node.slice)  # type: ignore[attr-defined]
        first, *others = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return self._is_array(node.value) and self._is_row(first) and all(self._reads(part, local) for part in others)

    def _is_inner_extent(self, node: ast.Subscript) -> bool:
        """x.shape[1], which is the same for a part of the rows."""
        value, place = node.value, node.slice
        shape = isinstance(value, ast.Attribute) and value.attr == "shape" and self._is_array(value.value)
        return shape and isinstance(place, ast.Constant) and isinstance(place.value, int) and place.value > 0

    def _is_array(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id in self.arrays

    def _is_row(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.row
