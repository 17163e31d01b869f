"""Reading a function's source: its tree, and what the names mean that it does not define."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from app.reading import UnreadableSourceError, definition_of

Known = Callable[[str], Any]
"""What a name stands for that a function does not define itself; None where that is not known."""

NUMBERS = (int, float, bool, np.generic)
MATH = frozenset(function for function in vars(math).values() if callable(function))
_ALIKE = ("empty_like", "zeros_like", "ones_like")


def parse(function: Any) -> tuple[ast.FunctionDef, Known] | None:
    """The tree of a function, and what the names mean that it does not define; None where its source cannot be read."""
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType):
        return None
    try:
        tree = definition_of(function)
    except UnreadableSourceError:
        return None
    outside = inspect.getclosurevars(function)
    if not isinstance(tree, ast.FunctionDef) or tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs:
        return None
    names = {**vars(builtins), **outside.globals, **outside.nonlocals}
    return tree, names.get


def parameters(tree: ast.FunctionDef) -> set[str]:
    """The names of a function's parameters."""
    return {argument.arg for argument in tree.args.args}


def body(tree: ast.FunctionDef) -> list[ast.stmt]:
    """A function's statements after its docstring."""
    first = tree.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return tree.body[1:] if documented else tree.body


def returned(statement: ast.Return) -> list[ast.expr | None]:
    """What a function returns, value by value."""
    return [*statement.value.elts] if isinstance(statement.value, ast.Tuple) else [statement.value]


def meaning(node: ast.AST, known: Known) -> Any:
    """What a name, or an attribute of a module that has a name, stands for."""
    if isinstance(node, ast.Name):
        return known(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and inspect.ismodule(known(node.value.id)):
        return getattr(known(node.value.id), node.attr, None)
    return None


def is_one_of(value: Any, things: Iterable[Any]) -> bool:
    """Whether a value is one of these things itself: what users' values compare as, or hash as, is not asked."""
    return any(value is thing for thing in things)


def is_name_of(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def are_names_of(nodes: Iterable[ast.AST | None], names: set[str]) -> bool:
    return all(node is not None and is_name_of(node, names) for node in nodes)


def new_array(statement: ast.stmt, arrays: set[str], known: Known) -> tuple[str, str, str] | None:
    """Of a statement that makes a new array: the name it gets, the known array that it is like, and the function."""
    if not (
        isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.Call)
    ):
        return None
    target, call = statement.targets[0], statement.value
    made_by = next((name for name in _ALIKE if meaning(call.func, known) is getattr(np, name)), None)
    if made_by is None or len(call.args) != 1 or call.keywords or not isinstance(target, ast.Name):
        return None
    like = call.args[0]
    if not (isinstance(like, ast.Name) and like.id in arrays) or target.id in arrays:
        return None
    return target.id, like.id, made_by
