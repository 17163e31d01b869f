"""The hash of an operator's source, by which a file says which operator it was written with.

It covers the functions, those that they call, and the values that they read. Comments, layout, types and docstrings do
not count, nor does which Python it is. What libraries have counts by its name alone.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from app.custom.functions import function_name, python_function
from app.engine.compiled.fingerprint import Walk
from app.errors import OperatorError


def source_hash(thing: Any) -> str:
    """The hash of a function, an operator or a class; an OperatorError where its source cannot be read."""
    return _Sources(thing).hash_of([thing])


def written_as(thing: Any) -> Any:
    """The Python function, or the class, that an operator or a function of Numba's was written as."""
    return python_function(thing.function if hasattr(thing, "made_of") else thing)


def home_of(thing: Any) -> str:
    """The name of the module that defines a function, an operator or a class."""
    return str(getattr(written_as(thing), "__module__", None) or "")


class _Sources(Walk):
    """The way through sources: a function is known by what its file says."""

    def __init__(self, root: Any):
        super().__init__()
        home = home_of(root)
        self._own = home if home.startswith("app.") else home.partition(".")[0]

    def add(self, thing: Any) -> None:
        made_of = getattr(thing, "made_of", None)
        if made_of is not None:
            super().add(made_of)
        elif isinstance(thing, type):
            self._add_class(thing)
        else:
            super().add(thing)

    def add_function(self, function: FunctionType, given: Any) -> None:
        if self._is_of_library(function):
            self.digest.update(f"{function.__module__}.{function.__qualname__}".encode())
            return
        nodes = nodes_of(function)
        used = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}
        used |= {n.attr for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        self.digest.update("".join(map(_said, nodes)).encode())
        self.add_names(sorted(used), function.__globals__)
        self.add_kept(function)

    def _add_class(self, kind: type) -> None:
        if self._is_of_library(kind):
            self.digest.update(f"{kind.__module__}.{kind.__qualname__}".encode())
            return
        self.digest.update(kind.__qualname__.encode())
        for base in kind.__bases__:
            self.add(base)
        for name, value in sorted(vars(kind).items()):
            value = getattr(value, "__func__", value)
            if isinstance(python_function(value), FunctionType) or not name.startswith("_"):
                self.digest.update(name.encode())
                self.add(value)

    def _is_of_library(self, thing: Any) -> bool:
        """Whether a function or a class is no part of what is hashed, nor of files that lie around by themselves."""
        home = thing.__module__ or ""
        top = home.partition(".")[0]
        if self._own in (home, top):
            return False
        file = getattr(sys.modules.get(home), "__file__", None) or ""
        return top == "app" or top in sys.stdlib_module_names or "-packages" in file


def nodes_of(function: FunctionType) -> list[ast.AST]:
    """What the file of a function says of it; an error where the file has changed since, or cannot be read."""
    code, name = function.__code__, function_name(function)
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text.strip():
        raise OperatorError(f"the source of {name} cannot be read ({code.co_filename}); define it in a file")
    try:
        tree, codes = _parsed(text)
    except (SyntaxError, ValueError) as error:
        raise OperatorError(f"the source of {name}, {code.co_filename}, cannot be read: {error}") from error
    nodes = [n for n in ast.walk(tree) if _begins_at(n, code)] if code in codes else []
    if not nodes:
        raise OperatorError(
            f"{code.co_filename} is no longer what {name} was made of: the file was changed since it was imported"
        )
    return nodes


def node_of(function: FunctionType) -> ast.AST | None:
    """What the file of a function says of it alone; None where several lambdas of its line might be it."""
    nodes, code = nodes_of(function), function.__code__
    if len(nodes) == 1:
        return nodes[0]
    _, codes = _parsed("".join(linecache.getlines(code.co_filename, function.__globals__)))
    alike = [c for c in codes if (c.co_name, c.co_firstlineno) == (code.co_name, code.co_firstlineno)]
    in_order = sorted(nodes, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]
    found = [n for n, c in zip(in_order, alike, strict=False) if c == code] if len(alike) == len(nodes) else []
    return found[0] if found else None


@lru_cache(maxsize=16)
def _parsed(text: str) -> tuple[ast.Module, tuple[CodeType, ...]]:
    return ast.parse(text), tuple(_codes_in(compile(text, "", "exec", dont_inherit=True)))


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)


def _begins_at(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return (code.co_name, code.co_firstlineno) == ("<lambda>", node.lineno)
    if not isinstance(node, ast.FunctionDef):
        return False
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return (code.co_name, code.co_firstlineno) == (node.name, first)


_SILENT = ("ctx", "kind", "type_comment", "returns", "annotation")


def _said(node: Any) -> str:
    """A piece of source as text, the same in every Python, without what changes nothing."""
    if isinstance(node, list):
        return "[" + ",".join(map(_said, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {k: v for k, v in ast.iter_fields(node) if k not in _SILENT and v is not None and v != []}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return type(node).__name__ + "(" + ",".join(f"{k}={_said(v)}" for k, v in fields.items()) + ")"
