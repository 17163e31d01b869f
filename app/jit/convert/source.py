"""From a function to its source, and from converted source to a function with the same globals, closure and lines."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from app.errors import ProgramError
from app.jit.convert.names import within
from app.jit.convert.rewrite import rewritten

MEANING = "_jit"
"""The name by which converted source calls what this package gives."""


def has_source(function: Any) -> bool:
    """Whether a function can be converted."""
    function = inspect.unwrap(function)
    return isinstance(function, FunctionType) and _tree(function.__code__) is not None


def with_meaning(function: FunctionType, meaning: Any) -> Callable[..., Any]:
    """A function with its control flow converted, which calls `meaning`; itself, where its source cannot be read."""
    if MEANING in function.__code__.co_freevars or _tree(function.__code__) is None:
        return function
    code = _compiled(function.__code__, function.__qualname__)
    known = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = tuple(CellType(meaning) if name == MEANING else known[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def code_of(function: Any) -> str:
    """The converted source of a function, as text."""
    function = inspect.unwrap(function)
    tree = _tree(function.__code__) if isinstance(function, FunctionType) else None
    if tree is None:
        raise ProgramError(f"the source of {function!r} cannot be read, so it is traced as it is")
    return ast.unparse(_converted(function.__code__, function.__qualname__))


@functools.lru_cache(maxsize=1024)
def _tree(code: CodeType) -> ast.FunctionDef | None:
    """The `def` of a function with the line numbers of its file; None where it has no such source."""
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError, IndexError):
        return None
    indented = lines[0][:1].isspace()
    try:
        module = ast.parse(("if True:\n" if indented else "") + "".join(lines))
    except SyntaxError:  # a lambda in the middle of a statement
        return None
    node: Any = module.body[0].body[0] if indented else module.body[0]  # type: ignore[attr-defined]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return None
    if any(isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await)) for inner in within(node)):
        return None
    ast.increment_lineno(node, first - (2 if indented else 1))
    return node


@functools.lru_cache(maxsize=1024)
def _converted(code: CodeType, qualname: str) -> ast.FunctionDef:
    tree = _tree.__wrapped__(code)  # another copy, to be changed
    assert tree is not None
    scopes = qualname.rpartition(".")[0]
    if scopes and not scopes.endswith("<locals>"):
        _Mangler(scopes.rpartition(".")[2]).visit(tree)
    return rewritten(tree)


@functools.lru_cache(maxsize=1024)
def _compiled(code: CodeType, qualname: str) -> CodeType:
    """The code of the converted function, compiled inside a function that has its free variables."""
    node = copy.copy(_converted(code, qualname))
    node.name = f"{code.co_name}_converted"  # under its own name it would hide what that name means outside
    free = [MEANING, *code.co_freevars]
    arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    result = ast.Return(ast.Name(node.name, ast.Load()))
    factory = ast.FunctionDef("factory", arguments, [node, result], [])
    factory.type_params = []  # type: ignore[attr-defined]  # Python 3.12 wants it
    module = ast.fix_missing_locations(ast.Module([factory], []))
    found: dict[str, Any] = {}
    exec(compile(module, code.co_filename, "exec", dont_inherit=True, flags=_future(code)), found)
    made: CodeType = found["factory"](*free).__code__
    named: Any = {"co_qualname": qualname} if hasattr(made, "co_qualname") else {}
    return made.replace(co_name=code.co_name, **named)


def _future(code: CodeType) -> int:
    """The `from __future__` statements that the function was compiled under."""
    import __future__

    flags = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
    return functools.reduce(lambda a, b: a | b, [f for f in flags if code.co_flags & f], 0)


class _Mangler(ast.NodeTransformer):
    """Names like `__secret` inside a class, as Python reads them there."""

    def __init__(self, owner: str):
        self.prefix = "_" + owner.lstrip("_")

    def _name(self, name: str) -> str:
        return self.prefix + name if name.startswith("__") and not name.endswith("__") else name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._name(node.attr)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._name(node.id)
        return node
