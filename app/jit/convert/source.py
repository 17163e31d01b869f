"""Converts functions: reads the source, has it rewritten, and compiles it with the same globals, closure and lines."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import WeakSet

from app.functions import code_beside
from app.jit.convert.names import suspends
from app.jit.convert.rewrite import rewritten
from app.jit.variable import RefusedError
from app.reading import NoSourceError, codes_in, definition_in, one_thread_at_a_time, place_in, too_deep

MEANING = "_jit"
"""The name under which converted source finds the functions of `meaning`. All names that are added begin with it."""

_converted_codes: WeakSet[CodeType] = WeakSet()
"""The code of converted functions, and of functions inside them."""


@dataclass(frozen=True)
class _Source:
    """A function to convert. Functions with the same code are converted once."""

    code: CodeType
    file: str  # not compared by code objects
    qualname: str
    around: dict[str, Any] = field(compare=False)


def with_meaning(function: FunctionType, meaning: Any) -> Callable[..., Any]:
    """Return the converted function, which calls `meaning`; the function itself if its source cannot be read."""
    if function.__code__ in _converted_codes or (code := _compiled(_source_of(function))) is None:
        return function
    by_name = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = tuple(CellType(meaning) if name == MEANING else by_name[name] for name in code.co_freevars)
    result = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__qualname__, result.__module__ = function.__qualname__, function.__module__
    return result


def code_of(function: Any) -> str:
    """Return the converted source of a function as text."""
    function = inspect.unwrap(function)
    tree = _converted(_source_of(function)) if isinstance(function, FunctionType) else None
    if tree is None:
        raise RefusedError(f"the source of {function!r} cannot be read, so it is traced without conversion")
    try:
        return ast.unparse(tree)
    except RecursionError:
        raise too_deep(tree, function.__code__) from None


def _source_of(function: FunctionType) -> _Source:
    code = function.__code__
    return _Source(code, code.co_filename, function.__qualname__, function.__globals__)


@one_thread_at_a_time
@functools.lru_cache(maxsize=1024)
def _converted(source: _Source) -> ast.FunctionDef | None:
    """The converted `def` of a function, with the line numbers of its file; None if it cannot be converted."""
    if source.code.co_name == "<lambda>":
        return None
    try:
        node = definition_in(source.code, source.around)
    except NoSourceError:
        return None
    if not isinstance(node, ast.FunctionDef):
        return None
    if suspends(node):
        return None
    _refuse_names(node, source.code)
    scopes = source.qualname.rpartition(".")[0]
    try:
        if scopes and not scopes.endswith("<locals>"):
            _Mangler(scopes.rpartition(".")[2]).visit(node)
        return rewritten(node)
    except RecursionError:
        raise too_deep(node, source.code) from None


@one_thread_at_a_time
@functools.lru_cache(maxsize=1024)
def _compiled(source: _Source) -> CodeType | None:
    """The code of the converted function, compiled inside a function that declares its free variables."""
    converted, code = _converted(source), source.code
    if converted is None:
        return None
    node = copy.copy(converted)
    node.name = f"{code.co_name}_converted"  # its own name could be that of a global that it reads
    try:
        compiled = code_beside(code, node, [MEANING, *code.co_freevars])
    except RecursionError:
        raise too_deep(node, code) from None
    named: Any = {"co_qualname": source.qualname} if hasattr(code, "co_qualname") else {}
    compiled = compiled.replace(co_name=code.co_name, **named)
    _converted_codes.update(codes_in(compiled))
    return compiled


def _refuse_names(function: ast.FunctionDef, code: CodeType) -> None:
    """Raise an error for a variable of the user's with a name that converted source adds."""
    for node in ast.walk(function):
        text = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
        if text.startswith(MEANING):
            raise RefusedError(
                f"{place_in(code, getattr(node, 'lineno', 0))}: a traced function cannot have a variable {text!r}, "
                f"because to_static adds names that begin with {MEANING!r}; give it another name"
            )


class _Mangler(ast.NodeTransformer):
    """Replaces private names (`__secret`) of a class, as Python's compiler does."""

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
