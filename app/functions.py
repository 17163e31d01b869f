"""Functions of Python and of Numba, and functions of a changed source with the variables of another function."""

from __future__ import annotations

import ast
import copy
import linecache
import sys
from collections.abc import Collection, Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from app.reading import codes_in, future_flags


def function_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def is_compiled(function: Any) -> bool:
    """Whether a function is compiled by Numba."""
    numba = sys.modules.get("numba.core.dispatcher")  # importing it takes half a second
    # `isinstance` may run code of a proxy object, which may raise, and `issubclass` is slow for Numba's classes
    return numba is not None and numba.Dispatcher in type(function).__mro__


def python_function(function: Any) -> Any:
    """The Python function of a Numba function, or the function itself."""
    return getattr(function, "py_func", function)


def without_keyword_only(function: FunctionType) -> FunctionType:
    """The function with ordinary parameters in place of keyword-only ones, which Numba does not have."""
    code = function.__code__
    if not code.co_kwonlyargcount:
        return function
    code = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    ordinary = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    vars(ordinary).update(vars(function))
    return ordinary


def unused(wish: str, names: Collection[str]) -> str:
    """A name like `wish` that is none of these."""
    name, number = wish, 1
    while name in names:
        number += 1
        name = f"{wish}_{number}" if wish[-1].isdigit() else f"{wish}{number}"
    return name


def function_beside(
    function: FunctionType, tree: ast.FunctionDef, extra: Mapping[str, Any], file: str = ""
) -> FunctionType:
    """The function of a tree, with the globals and the closure of another function, and these extra variables.

    It shares them, so that both functions see a variable that is assigned later. `file` is a name under which linecache
    keeps the source.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: CellType(value) for name, value in extra.items()}
    named = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    code = code_beside(function.__code__, tree, sorted(named & cells.keys()), file)
    return FunctionType(code, function.__globals__, tree.name, None, tuple(cells[name] for name in code.co_freevars))


def code_beside(code: CodeType, tree: ast.FunctionDef, free: Sequence[str], file: str = "") -> CodeType:
    """The code of a tree that is compiled in place of another code, with these free variables."""
    module = ast.parse(f"def {unused('closure', [tree.name])}({', '.join(free)}): pass" if free else "")
    around = next((node for node in module.body if isinstance(node, ast.FunctionDef)), module)
    around.body = [tree]
    ast.fix_missing_locations(module)
    if file:
        text = text_of_tree(module) + "\n"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        module = ast.parse(text)
    whole = compile(module, file or code.co_filename, "exec", dont_inherit=True, flags=future_flags(code))
    return next(each for each in codes_in(whole) if each.co_name == tree.name)


def text_of_tree(tree: ast.AST) -> str:
    """The text of a tree. `ast.unparse` writes the number -2 before `** 2` without parentheses, which means -4."""
    if any(map(_is_power_of_negative, ast.walk(tree))):
        tree = _Parenthesised().visit(copy.deepcopy(tree))
    return ast.unparse(tree)


def _is_power_of_negative(node: ast.AST) -> bool:
    base = node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) else None
    number = base.value if isinstance(base, ast.Constant) else None
    return isinstance(number, (int, float)) and str(number).startswith("-")  # as is that of -0.0


class _Parenthesised(ast.NodeTransformer):
    """Writes the negative base of a power as the negation of a number."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if _is_power_of_negative(node):
            node.left = ast.UnaryOp(ast.USub(), ast.Constant(abs(ast.literal_eval(node.left))))
        return self.generic_visit(node)
