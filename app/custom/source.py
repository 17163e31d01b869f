"""Whether an operator is the same program text: the hash of its source, by which a file says what it was written with.

It covers the functions, those that they call, and the constants and the statements of their modules that they read.
Comments, layout, types and docstrings do not count, nor does which Python it is, nor what changes while a program runs:
of an array, a dictionary or any other object it is the statement that makes it that counts. What libraries have counts
by its name alone. (Whether *compiled code* is the same is another question: see `app.engine.compiled.fingerprint`.)
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from app.custom.numba_functions import is_compiled, python_function
from app.custom.operator import CustomOperator
from app.engine.compiled.fingerprint import Walk, content_of
from app.ops.definition import OpDef
from app.reading import definitions_of, module_of, module_tree, too_deep


def source_hash(thing: Any) -> str:
    """The hash of a function, an operator or a class; an OperatorError where its source cannot be read."""
    return _Sources(thing).hash_of([thing])


def written_as(thing: Any) -> Any:
    """The Python function, or the class, that an operator or a function of Numba's was written as."""
    return python_function(thing.function if isinstance(thing, CustomOperator) else thing)


def home_of(thing: Any) -> str:
    """The name of the module that defines a function, an operator or a class."""
    return str(getattr(written_as(thing), "__module__", None) or "")


class _Sources(Walk):
    """The way through sources: a function is known by what its file says."""

    def __init__(self, root: Any):
        super().__init__()
        home = home_of(root)
        self._own = home if home.startswith("app.") else home.partition(".")[0]
        self._trees: dict[int, ast.Module | None] = {}
        """The source of modules, by the addresses of their globals."""
        self._told: set[tuple[int, str]] = set()
        """The names of modules whose statements were told, each with the address of the module's globals."""

    def hash_of(self, things: Iterable[Any]) -> str:
        for thing in things:
            self.add(thing)
            around = vars(sys.modules.get(home_of(thing), ModuleType("")))
            named = [name for name, value in around.items() if value is thing]
            if named and getattr(written_as(thing), "__qualname__", "") not in named:
                self._add_text(named[0], around)  # `act = made_with(0.1)`
        return self.digest.hexdigest()

    def add(self, thing: Any) -> None:
        if isinstance(thing, OpDef):
            self.note("operator", thing.name)
            super().add(getattr(thing, "made_of", None))
        else:
            super().add(thing)

    def add_function(self, function: FunctionType, given: Any) -> None:
        if self._is_of_library(function):
            self.note("function", f"{function.__module__}.{function.__qualname__}")
            return
        self.add(getattr(given, "targetoptions", None))
        tree, nodes = module_of(function), definitions_of(function)
        self._trees.setdefault(id(function.__globals__), tree)
        try:
            self.note("source", "".join(map(_said, nodes)))
        except RecursionError:
            raise too_deep(nodes[0], function.__code__) from None
        self.add_names(_names(nodes), function.__globals__)
        changing = _changed_inside(tree)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._add_kept(None if name in changing else content_of(cell))
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._add_kept(default)

    def add_class(self, kind: type) -> None:
        if self._is_of_library(kind):
            self.note("class", f"{kind.__module__}.{kind.__qualname__}")
            return
        self.note("class", kind.__qualname__)
        for base in kind.__bases__:
            self.add(base)
        around = vars(sys.modules.get(kind.__module__, ModuleType("")))
        tree = self._tree_of(around)
        for name, value in sorted(vars(kind).items()):
            code = python_function(getattr(value, "__func__", value))
            if isinstance(code, FunctionType):
                if not code.__code__.co_filename.startswith("<"):  # a dataclass's own, which its fields say
                    self.note("name", name)
                    self.add(value)
            elif not name.startswith("_"):
                self.note("name", name)
                changes = tree is not None and name in _changed_inside(tree)
                if changes or not self._add_kept(value):
                    self._add_statements(_binding(_body_of(kind, tree), name), around)

    def add_object(self, thing: Any) -> None:
        self.add(type(thing))
        self.note("object", str(getattr(thing, "__qualname__", getattr(thing, "__name__", ""))))
        inner = getattr(thing, "__wrapped__", None)
        if isinstance(inner, FunctionType):
            self.add(inner)

    def name_of(self, thing: Any) -> str:
        return str(thing.__qualname__)  # a script's module has one name when it is run, and another when imported

    def add_named(self, name: str, around: dict[str, Any]) -> None:
        self.note("name", name)
        if name.startswith("__"):  # `__file__` and `__name__` are of the place and the way in which a file is run
            return
        tree = self._tree_of(around)
        changes = tree is not None and name in _changed_inside(tree)
        if changes or not self._add_kept(around[name]):
            self._add_text(name, around)

    def is_followed(self, owner: Any) -> bool:
        return isinstance(owner, ModuleType) and not self._is_of_library(owner)

    def _add_kept(self, value: Any) -> bool:
        """Bring a constant, or code, into the hash, which gives True; of what may change only the type."""
        if isinstance(value, functools.partial):
            return self._add_all_kept(value.func, *value.args, *value.keywords.values())
        if isinstance(value, MethodType):
            return self._add_all_kept(value.__func__, value.__self__)
        if _is_constant(value) or isinstance(value, _CODE) or is_compiled(value):
            self.add(value)
            return True
        self.add_object(value)
        return False

    def _add_all_kept(self, *values: Any) -> bool:
        kept = [self._add_kept(value) for value in values]
        return all(kept)

    def _add_text(self, name: str, around: dict[str, Any]) -> None:
        """Bring into the hash the statements of a module that give a name its value, and what they use."""
        tree = self._tree_of(around)
        if tree is None or (id(around), name) in self._told:
            return
        self._told.add((id(around), name))
        self._add_statements(_binding(tree.body, name), around)
        for home, known_as in _imported(tree, name, around):
            if known_as in vars(home) and not self._is_of_library(home):
                self._add_text(known_as, vars(home))

    def _add_statements(self, statements: Iterable[ast.AST], around: dict[str, Any]) -> None:
        nodes = list(statements)
        self.note("statements", "".join(map(_said, nodes)))
        self.add_names(_names(nodes), around)

    def _tree_of(self, around: dict[str, Any]) -> ast.Module | None:
        if id(around) not in self._trees:
            file = around.get("__file__")
            self._trees[id(around)] = module_tree(file, around) if isinstance(file, str) else None
        return self._trees[id(around)]

    def _is_of_library(self, thing: Any) -> bool:
        """Whether a thing is no part of what is hashed, nor of files that lie around by themselves."""
        home = (thing.__name__ if isinstance(thing, ModuleType) else thing.__module__) or ""
        top = home.partition(".")[0]
        if self._own in (home, top):
            return False
        file = getattr(sys.modules.get(home), "__file__", None) or ""
        return top == "app" or top in sys.stdlib_module_names or "-packages" in file


_CODE = (FunctionType, BuiltinFunctionType, ModuleType, type, staticmethod, classmethod, property, np.ufunc, OpDef)
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(...), range, np.generic, np.dtype, enum.Enum)


def _body_of(kind: type, tree: ast.Module | None) -> list[ast.stmt]:
    """The statements of a class, where its module has it at the top level or in another class."""
    body = [] if tree is None else tree.body
    for step in kind.__qualname__.split("."):
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == step]
        body = found[-1].body if found else []
    return body


def _is_constant(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(_is_constant(item) for item in value)
    return isinstance(value, _CONSTANTS)


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    parts = [part for node in nodes for part in ast.walk(node)]
    named = {part.id for part in parts if isinstance(part, ast.Name)}
    return named | {part.attr for part in parts if isinstance(part, ast.Attribute)}


@functools.lru_cache(maxsize=64)
def _changed_inside(tree: ast.Module) -> frozenset[str]:
    """The names that functions of a module give values to that are not their own: what they hold is no constant."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return frozenset(found)


def _binding(body: Iterable[ast.stmt], name: str) -> Iterator[ast.AST]:
    """The statements among these, and inside their branches and loops, that give a name its value."""
    for statement in body:
        blocks = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(statement, "handlers", [])]
        blocks += [case.body for case in getattr(statement, "cases", [])]
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if statement.name == name:
                yield statement
        elif any(blocks):
            found = [node for block in blocks for node in _binding(block, name)]
            heads = [node for node in ast.iter_child_nodes(statement) if isinstance(node, (ast.expr, ast.withitem))]
            if found or any(_stores(head, name) for head in heads):
                yield from heads
            yield from found
        elif _stores(statement, name):
            yield statement


def _stores(node: ast.AST, name: str) -> bool:
    """Whether a statement gives a name a value, or changes what it has: `T = []`, `T[0] = 1`, `T.append(2)`."""
    for part in ast.walk(node):
        stored = isinstance(getattr(part, "ctx", None), (ast.Store, ast.Del))
        if (
            isinstance(part, ast.Expr)
            and isinstance(part.value, ast.Call)
            and isinstance(part.value.func, ast.Attribute)
        ):
            part, stored = part.value.func, True
        while stored and isinstance(part, (ast.Subscript, ast.Attribute)):
            part = part.value
        if stored and isinstance(part, ast.Name) and part.id == name:
            return True
    return False


def _imported(tree: ast.Module, name: str, around: dict[str, Any]) -> Iterator[tuple[ModuleType, str]]:
    """The modules that a module takes a name from, and what they call it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or (node.level and not around.get("__package__")):
            continue
        home = importlib.util.resolve_name("." * node.level + (node.module or ""), around.get("__package__"))
        for alias in node.names:
            if home in sys.modules and (alias.name == "*" or name == (alias.asname or alias.name)):
                yield sys.modules[home], name if alias.name == "*" else alias.name


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
