"""Functions on arrays that work number by number: arithmetic on whole arrays, or loops over their elements."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from app.custom.proofs.elements import UnprovenError, on_one_element
from app.custom.proofs.reading import NUMBERS, Known, body, is_one_of, meaning, parameters, parse, returned
from app.ops.form import OnNumbers
from app.reading import one_thread_at_a_time

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd)


@one_thread_at_a_time
def on_numbers(function: Any) -> OnNumbers | None:
    """The function for single numbers, where its source proves that it works number by number; else None."""
    parsed = parse(function)
    if parsed is None:
        return None
    tree, known = parsed
    try:
        if not _has_loops(tree):
            return None if _beyond_numbers(tree, known) else OnNumbers(_chosen(function, tree, known))
        tree, axes = on_one_element(tree, known)
    except (UnprovenError, RecursionError):  # nested too deeply to be walked through
        return None
    return OnNumbers(_dividing_as(function, _made(function, tree)), axes, keeps_type=True)


def stops_on_numbers(function: Any) -> tuple[int, str] | None:
    """The first line that goes beyond what `on_numbers` proves, and what stands there; None where nothing does."""
    parsed = parse(function)
    if parsed is None:
        return None
    try:
        found = _beyond_elements(*parsed) if _has_loops(parsed[0]) else _beyond_numbers(*parsed)
        return None if found is None else (found.lineno, ast.unparse(found).partition("\n")[0])
    except RecursionError:
        return parsed[0].lineno, "an expression that is nested too deeply"


def _has_loops(tree: ast.FunctionDef) -> bool:
    return any(isinstance(statement, ast.For) for statement in tree.body)


def _beyond_elements(tree: ast.FunctionDef, known: Known) -> ast.stmt | ast.expr | None:
    try:
        on_one_element(tree, known)
    except UnprovenError as error:
        return error.node
    return None


def _made(function: Any, tree: ast.FunctionDef, **more: Any) -> FunctionType:
    """The function of a tree that was made of another function's; `more` are names that it has besides."""
    tree.decorator_list, tree.args.defaults, tree.returns = [], [], None
    for argument in tree.args.args:
        argument.annotation = None
    source = getattr(function, "py_func", function)
    names = {**source.__globals__, **inspect.getclosurevars(source).nonlocals, **more}
    exec(compile(ast.fix_missing_locations(ast.Module([tree], [])), source.__code__.co_filename, "exec"), names)
    made: FunctionType = names[tree.name]
    made.__defaults__ = source.__defaults__
    return made


def _dividing_as(function: Any, made: FunctionType) -> Callable[..., Any]:
    """A function whose divisions by zero do what those of a Numba function do: raise, unless it says otherwise."""
    options = getattr(function, "targetoptions", {})
    if not options or options.get("error_model") == "numpy":
        return made
    from numba import njit

    dispatcher: Callable[..., Any] = njit(made, error_model="python")  # unless told, Numba does as the caller does
    return dispatcher


# Choices between two numbers


def _chosen(function: Any, tree: ast.FunctionDef, known: Known) -> FunctionType:
    """The function with its choices between arrays made choices between numbers."""
    from numba import njit

    choosing = _Choosing(known)
    return _made(function, choosing.visit(tree), **{name: njit(_CHOICES[name]) for name in choosing.used})


def _maximum(x: Any, y: Any) -> Any:
    return x if (x >= y) | (x != x) else y


def _minimum(x: Any, y: Any) -> Any:
    return x if (x <= y) | (x != x) else y


_CHOICES = {"np.maximum": _maximum, "np.minimum": _minimum}
"""What is not a number wins, as in NumPy's; by names that no function can have itself."""


class _Choosing(ast.NodeTransformer):
    """np.where of numbers, which Numba makes arrays for, becomes Python's choice between two values; and so do
    np.maximum and np.minimum, for which some of its versions do not make instructions on vectors."""

    def __init__(self, known: Known):
        self._known = known
        self.used: set[str] = set()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = meaning(node.func, self._known)
        if function is np.where:
            return ast.IfExp(*node.args)
        for name in _CHOICES:
            if function is getattr(np, name.removeprefix("np.")):
                self.used.add(name)
                node.func = ast.Name(name, ast.Load())
        return node


# Arithmetic on whole arrays


def _beyond_numbers(tree: ast.FunctionDef, known: Known) -> ast.stmt | None:
    """The first statement that is no arithmetic on numbers."""
    names = parameters(tree)
    for statement in body(tree):
        if isinstance(statement, ast.Return):
            parts = returned(statement)
            fits = all(_is_elementwise(part, names, known) and _mentions(part, names) for part in parts)
            return None if fits else statement
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            return statement
        target = statement.targets[0]
        if not (isinstance(target, ast.Name) and _is_elementwise(statement.value, names, known)):
            return statement
        if _mentions(statement.value, names):
            names.add(target.id)
    return tree


def _mentions(node: ast.AST | None, names: set[str]) -> bool:
    return node is not None and any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _is_elementwise(node: ast.AST | None, names: set[str], known: Known) -> bool:
    """Whether an expression means for arrays, element by element, what it means for single numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.Name):
        return node.id in names or isinstance(known(node.id), NUMBERS)
    if isinstance(node, ast.Attribute):
        return isinstance(meaning(node, known), NUMBERS)
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
            and _is_elementwise_function(meaning(node.func, known), given)
            and all(_is_elementwise(part, names, known) for part in node.args)
        )
    return False


def _is_elementwise_function(function: Any, given: int) -> bool:
    if isinstance(function, np.ufunc):
        return function.nout == 1 and function.nin == given and function.signature is None
    return (function is np.where and given == 3) or is_one_of(function, (np.float32, np.float64))
