"""The hash of an operator's source, by which a saved file recognises the operator that it was written with.

It covers the functions, those that they call, and the constants and the statements of their modules that they read.
Comments, layout, annotations, docstrings and the version of Python make no difference. Neither do values that change
while a program runs: an array, a dictionary or another object counts by the statement that makes it. Objects of
libraries count by name only. (Whether *compiled code* is the same is decided by `opsmith.engine.compiled.fingerprint`.)
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from app.custom.foreign import operator_of_framework
from app.custom.numba_functions import is_compiled, python_function
from app.custom.operator import home_of, written_as
from app.engine.compiled.fingerprint import Walk, content_of
from app.ops.definition import OpDef
from app.reading import (
    PACKAGE,
    Definition,
    codes_in,
    definitions_of,
    module_of,
    module_tree,
    public_name,
    too_deep,
)

_EARLIER = {
    "6dee04712c31d205f929a81027263f2be9eb9d268acdfa2081b705e615d93925":
        "f907b270c2bd36bba8822e1d98e8f4b2b2da4849bff6a639db5f8cb62d4fe8d6",
    "dd1f02f664d0d5b457313fb8ad991fa93ef4b85b6b1fde53c15d4d15637b849f":
        "8239b8ecf003fed642bada943b14e3005d14d59af304d424616c1a9fb535f20e",
    "08959a42bd061ab50e76fcdf135cac4e51ed34d3c79d0929a08d958cdce62c51":
        "d67107dd252c6f6c570ff9d59b2802915d48e17a3f2e751cfc704b67b0235e77",
    "aafcaf7ce1f0be654d51d56464fd389091af80005e7b69b8873b1771029cb767":
        "1ccab8f88c2663ab7554a1d935df3e53e8d22fd763490534d9ccc1fbc72475a8",
    "0ad0be55b240c3dc20cbb2734e454cf2234e225785f197f1b629440dd735908a":
        "f6e0e57396e21010c6712a3bd305192de434b018a10eb9ed2b44c7c9ece573d0",
}  # fmt: skip
"""The hashes of the shipped `relu` and `leaky_relu`, each with the one that earlier files have: their functions said
`cache=True`, which had no effect."""


def is_same_source(now: str | None, before: str | None) -> bool:
    """Whether hashes are equal, or the earlier one is that of an earlier release whose operator computes the same."""
    return before == now or (now is not None and before == _EARLIER.get(now))


def source_hash(thing: Any) -> str:
    """The hash of a function, an operator or a class; an OperatorError if its source cannot be read."""
    things = _written(thing)
    return _Sources(things[0]).hash_of(things)


def _written(thing: Any) -> Sequence[Any]:
    """What the user wrote: of an operator of another framework its functions or its class."""
    other = operator_of_framework(thing)
    return [thing] if other is None else other.foreign.functions or [other.foreign.thing]


def hash_of_behaviour(thing: Any) -> str | None:
    """The hash of a source that alone decides what a thing computes; None if values that may change decide it, too."""
    things = _written(thing)
    sources = _Sources(things[0])
    found = sources.hash_of(things)
    return found if sources.is_fixed else None


class _Sources(Walk):
    """The walk through sources, in which a function counts by its text."""

    def __init__(self, root: Any):
        super().__init__()
        home = home_of(root)
        self._own = home if home.startswith(f"{PACKAGE}.") else home.partition(".")[0]
        self._trees: dict[int, ast.Module | None] = {}
        """The trees of modules, by the ids of their globals."""
        self._hashed: set[tuple[int, str]] = set()
        """The names whose statements were hashed, each with the id of its module's globals."""
        self.is_fixed = True
        """Whether every value was added by its content, or cannot change."""
        self._closes_over_objects = False
        """Whether a function was added that closes over a value of which only the type counts."""

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
        elif isinstance(thing, ModuleType):
            self.note("module", public_name(thing.__name__))
        else:
            super().add(thing)

    def add_function(self, function: FunctionType, given: Any) -> None:
        if self._is_of_library(function):
            self.note("function", f"{public_name(function.__module__)}.{function.__qualname__}")
            return
        self.add(getattr(given, "targetoptions", None))
        tree, nodes = module_of(function), definitions_of(function)
        self._trees.setdefault(id(function.__globals__), tree)
        try:
            self.note("source", "".join(map(_said, nodes)))
        except RecursionError:
            raise too_deep(nodes[0], function.__code__) from None
        self.add_names(_names(nodes) - _own_names(function, nodes), function.__globals__)
        self.is_fixed &= not vars(function).keys() - {"__wrapped__", "derived_from"}
        changing = _changed_inside(tree)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            kept = self._add_kept(None if name in changing else content_of(cell))
            self._closes_over_objects |= not kept
            self.is_fixed &= name not in changing
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._add_kept(default)

    def add_class(self, kind: type) -> None:
        if self._is_of_library(kind):
            self.note("class", f"{public_name(kind.__module__)}.{kind.__qualname__}")
            return
        self.note("class", kind.__qualname__)
        for base in kind.__bases__:
            self.add(base)
        if not self._is_of_library(type(kind)):
            self.add(type(kind))
        around = vars(sys.modules.get(kind.__module__, ModuleType("")))
        tree = self._tree_of(around)
        body = _body_of(kind, tree)
        for field in vars(kind).get("__dataclass_fields__", ()):
            self.note("field", field)
            self._add_statements(_binding(body, field), around)
        for name, value in sorted(vars(kind).items()):
            code = python_function(getattr(value, "__func__", value))
            written = name.removeprefix("_" + kind.__name__.lstrip("_")) if "__" in name[1:] else name
            if isinstance(code, FunctionType):
                inner = inspect.unwrap(code).__code__
                if not inner.co_filename.startswith("<"):  # generated by dataclass from the fields, which count
                    self.note("name", name)
                    self.add(value)
            elif not name.startswith("_") or (not name.startswith("__") and any(_binding(body, written))):
                self.note("name", name)
                changes = tree is not None and written in _changed_inside(tree)
                self.is_fixed &= not changes
                if changes or not self._add_kept(value):
                    self._add_statements(_binding(body, written), around)
            else:
                self.is_fixed &= name.startswith("__") or name == "_where"  # the line of a PyLayer, for messages

    def add_object(self, thing: Any) -> None:
        self.is_fixed &= isinstance(thing, _CODE)
        self.add(type(thing))
        self.note("object", str(getattr(thing, "__qualname__", getattr(thing, "__name__", ""))))
        inner = getattr(thing, "__wrapped__", None)
        if isinstance(inner, FunctionType):
            self.add(inner)

    def name_of(self, thing: Any) -> str:
        return str(thing.__qualname__)  # without the module, which is __main__ when a script is run

    def add_named(self, name: str, around: dict[str, Any]) -> None:
        self.note("name", name)
        if name.startswith("__"):  # `__file__` and `__name__` depend on where and how a file is run
            return
        tree = self._tree_of(around)
        changes = tree is not None and name in _changed_inside(tree)
        self.is_fixed &= not changes
        outside, self._closes_over_objects = self._closes_over_objects, False
        if changes or not self._add_kept(around[name]) or self._closes_over_objects:
            self._add_text(name, around)  # `helper = made_with(np.array([0.1]))`
        self._closes_over_objects = outside

    def is_followed(self, owner: Any) -> bool:
        return isinstance(owner, ModuleType) and not self._is_of_library(owner)

    def _add_kept(self, value: Any) -> bool:
        """Add a constant, or code, to the hash; gives True. Of a value that may change only the type is added."""
        if isinstance(value, functools.partial):
            return self._add_all_kept(value.func, *value.args, *value.keywords.values())
        if isinstance(value, MethodType):
            return self._add_all_kept(value.__func__, value.__self__)
        made = isinstance(value, np.ufunc) and value.__name__.endswith(" (vectorized)")  # by np.frompyfunc
        if _is_constant(value) or (isinstance(value, _CODE) and not made) or is_compiled(value):
            self.add(value)
            return True
        self.add_object(value)
        return False

    def _add_all_kept(self, *values: Any) -> bool:
        kept = [self._add_kept(value) for value in values]
        return all(kept)

    def _add_text(self, name: str, around: dict[str, Any]) -> None:
        """Add the statements of a module that give a name its value, and what they use, to the hash."""
        tree = self._tree_of(around)
        if tree is None or (id(around), name) in self._hashed:
            return
        self._hashed.add((id(around), name))
        self._add_statements(_binding(tree.body, name, not callable(around.get(name))), around)
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
        """Whether a thing belongs to a library: neither to the hashed package nor to a file outside of packages."""
        home = (thing.__name__ if isinstance(thing, ModuleType) else thing.__module__) or ""
        top = home.partition(".")[0]
        if self._own in (home, top):
            return False
        file = getattr(sys.modules.get(home), "__file__", None) or ""
        return top == PACKAGE or top in sys.stdlib_module_names or "-packages" in file


_CODE = (FunctionType, BuiltinFunctionType, ModuleType, type, staticmethod, classmethod, property, np.ufunc, OpDef)
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(...), range, np.generic, np.dtype, enum.Enum)


def _body_of(kind: type, tree: ast.Module | None) -> list[ast.stmt]:
    """The statements of a class that is defined at the top level of its module or in another class."""
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


def _own_names(function: FunctionType, nodes: Sequence[Definition]) -> set[str]:
    """The parameters and local variables of a function, which in a notebook have the names of many globals: `x`."""
    if len(nodes) > 1:  # several lambdas on a line, of which it is one
        return set()
    code, arguments = function.__code__, nodes[0].args
    heads = [*arguments.defaults, *filter(None, arguments.kw_defaults), *getattr(nodes[0], "decorator_list", ())]
    read = {name for inner in codes_in(code) for name in inner.co_names} | _names(heads)
    return {*code.co_varnames, *code.co_cellvars} - read


@functools.lru_cache(maxsize=64)
def _changed_inside(tree: ast.Module) -> frozenset[str]:
    """The names outside of functions that functions of a module assign to: their values are not constant."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return frozenset(found)


def _binding(body: Iterable[ast.stmt], name: str, given: bool = False) -> Iterator[ast.AST]:
    """The statements, in branches and loops too, that give a name its value; with `given` also calls that get it."""
    for statement in body:
        blocks = [getattr(statement, field, []) for field in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(statement, "handlers", [])]
        blocks += [case.body for case in getattr(statement, "cases", [])]
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if statement.name == name:
                yield statement
        elif any(blocks):
            found = [node for block in blocks for node in _binding(block, name, given)]
            heads = [node for node in ast.iter_child_nodes(statement) if isinstance(node, (ast.expr, ast.withitem))]
            if found or any(_stores(head, name) for head in heads):
                yield from heads
            yield from found
        elif _stores(statement, name) or (given and _gives(statement, name)):
            yield statement


def _gives(statement: ast.stmt, name: str) -> bool:
    """Whether a statement is a call that gets a value, and so may change it: `np.copyto(T, 1)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or (isinstance(call.func, ast.Name) and call.func.id == "print"):
        return False
    return any(name in _names([part]) for part in (*call.args, *(keyword.value for keyword in call.keywords)))


def _stores(node: ast.AST, name: str) -> bool:
    """Whether a statement assigns to a name or changes its value: `T = []`, `T[0] = 1`, `T.append(2)`."""
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
    """The modules from which a module imports a name, with the name that they have for it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or (node.level and not around.get("__package__")):
            continue
        home = importlib.util.resolve_name("." * node.level + (node.module or ""), around.get("__package__"))
        for alias in node.names:
            if home in sys.modules and (alias.name == "*" or name == (alias.asname or alias.name)):
                yield sys.modules[home], name if alias.name == "*" else alias.name


_SILENT = ("ctx", "kind", "type_comment", "returns", "annotation")


def _said(node: Any) -> str:
    """A tree as text that is the same in every version of Python, without annotations and docstrings."""
    if isinstance(node, list):
        return "[" + ",".join(map(_said, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {k: v for k, v in ast.iter_fields(node) if k not in _SILENT and v is not None and v != []}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return type(node).__name__ + "(" + ",".join(f"{k}={_said(v)}" for k, v in fields.items()) + ")"
