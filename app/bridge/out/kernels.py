"""The source of functions that stay loops, with what they read: other functions, numbers and small arrays."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from app.bridge.out import vectors
from app.bridge.out.names import Names, literal
from app.errors import ExportError
from app.functions import is_compiled, python_function
from app.reading import definition_of, one_thread_at_a_time, parameters_of, place_in, source_text, variables_around

_MODULES = {"numpy": "np", "math": "math"}
_LARGEST = 64
"""Elements of an array that may be written into a file."""


@dataclass
class Kernels:
    """Functions as text, with what a module must define before them, and import beside math and np."""

    names: Names
    in_vectors: bool = False
    """Whether loops call the functions of the template `vectors.txt`."""
    imports: dict[str, None] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    """The text of numbers and arrays by name."""
    functions: dict[str, str] = field(default_factory=dict)
    """The text of functions by name, in an order in which each follows what it calls."""
    called: set[str] = field(default_factory=set)
    """Which of them: "exp" for `_exp`."""
    _function_names: dict[tuple[FunctionType, bool], str] = field(default_factory=dict)
    """The names of functions, each compiled or not."""

    def __post_init__(self) -> None:
        for name in vectors.NAMES:
            self.names.fresh(name)

    @property
    def source(self) -> str:
        return "\n\n\n".join(self.functions.values())

    @one_thread_at_a_time
    def add(
        self, function: FunctionType, name: str, options: Mapping[str, Any] | None, parameters: Sequence[str]
    ) -> None:
        """Add a function as `name`, with its parameters in this order.

        Numba compiles it with these options, or it stays Python without any.
        """
        if list(parameters) == list(parameters_of(function)):  # otherwise functions that call it need one of their own
            self._function_names[function, options is not None] = name
        text = self._text(function, name, options is not None, parameters)
        self.functions[name] = _decorator(options) + text

    def _text(self, function: FunctionType, name: str, compiled: bool, parameters: Sequence[str] = ()) -> str:
        """A function under a name. The text is the user's, but for names that mean something else in the module, and
        for what compiled loops compute in vectors.
        """
        tree = definition_of(function)
        around = variables_around(function)
        local = {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
        local |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        attributes = {id(n.value): n for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        text = source_text(function).splitlines()
        first = min(node.lineno for node in (tree, *getattr(tree, "decorator_list", [])))

        def meaning(node: ast.expr) -> Any:
            if isinstance(node, ast.Attribute):
                home = meaning(node.value)
                return getattr(home, node.attr, None) if isinstance(home, ModuleType) else None
            return around.get(node.id) if isinstance(node, ast.Name) and node.id not in local else None

        changes: dict[tuple[int, int], vectors.Change] = {}
        may_call = compiled and self.in_vectors and local.isdisjoint(vectors.NAMES)
        in_vectors = vectors.calls_in(tree, meaning) if may_call else {}
        parts = [tree.body] if isinstance(tree, ast.Lambda) else tree.body
        for node in [n for part in parts for n in ast.walk(part)]:
            if isinstance(node, ast.Name) and node.id not in local and node.id in around:
                if id(node) in in_vectors:
                    old, short = in_vectors[id(node)]
                    self.called.add(short)
                    new = f"_{short}"
                else:
                    read = around[node.id]
                    old, new = node.id, self._read(function, node, read, attributes.get(id(node)), compiled)
                if new in local:
                    raise ExportError(f"{_at(function, node)}: {new} is also the name of a variable: rename it")
                if new != old:
                    changes[node.lineno, node.col_offset] = old, new
        if in_vectors:
            for short, more in vectors.sums_in(tree, text, first):
                self.called.add(short)
                changes |= more
        arguments = ", ".join(parameters) if parameters else self._arguments(function)
        if isinstance(tree, ast.Lambda):
            changed = _Renaming(changes).visit(tree.body)
            return f"def {name}({arguments}):\n    return {ast.unparse(changed)}"
        for (line, column), (old, new) in sorted(changes.items(), reverse=True):
            row = text[line - first].encode()
            text[line - first] = (row[:column] + new.encode() + row[column + len(old.encode()) :]).decode()
        if tree.body[0].lineno == tree.lineno:  # def f(x): return x
            lines = [f"    {ast.unparse(_Renaming(changes).visit(s))}" for s in tree.body]
            return "\n".join([f"def {name}({arguments}):", *lines])
        return f"def {name}({arguments}):\n" + _body(tree, text, first)

    def _arguments(self, function: FunctionType) -> str:
        """The parameters of a function that others call, with their defaults."""
        parameters = []
        for name, parameter in parameters_of(function).items():
            default = parameter.default
            if default is not parameter.empty:
                plain = default.item() if isinstance(default, np.generic) else default
                if type(plain) not in (bool, int, float, str, type(None)):
                    raise ExportError(
                        f"{place_in(function.__code__)}: the default of {name} is {type(default).__name__}: only "
                        "numbers and text can leave as defaults"
                    )
                default = _Source(literal(plain))
            parameters.append(parameter.replace(annotation=parameter.empty, default=default))
        return str(inspect.Signature(parameters))[1:-1]

    def _read(
        self, function: FunctionType, node: ast.Name, value: Any, attribute: ast.Attribute | None, compiled: bool
    ) -> str:
        """The name of a value that a function reads."""
        if isinstance(value, ModuleType):
            if value.__name__ not in _MODULES:
                what = ast.unparse(attribute) if attribute is not None else node.id
                raise ExportError(
                    f"{_at(function, node)}: it reads {what}, of the module {value.__name__}: only numpy, math and "
                    "what its own file defines can leave with it; make it a setting, or a number beside the function"
                )
            return _MODULES[value.__name__]
        home = getattr(value, "__module__", None)
        if isinstance(value, np.ufunc) or (callable(value) and home in ("math", "numpy")):
            module = "math" if home == "math" else "numpy"
            self.imports[f"from {module} import {value.__name__}"] = None
            return str(value.__name__)
        inner = python_function(value)
        if isinstance(inner, FunctionType):
            if compiled and not is_compiled(value):  # in Numba, integers overflow, and have no negative powers
                raise ExportError(
                    f"{_at(function, node)}: it is exported as compiled code, and calls {node.id}, which is plain "
                    f"Python: put @njit above {node.id}"
                )
            return self._helper(inner, value)
        if isinstance(value, (bool, int, float, str, np.generic)):
            plain = value.item() if isinstance(value, np.generic) else value
            return self._constant(node.id, plain, literal(plain))
        if isinstance(value, np.ndarray) and value.size <= _LARGEST and value.dtype.kind in "biuf":
            text = f"np.array({value.tolist()!r}, dtype=np.{value.dtype.name})"
            if np.isfinite(value).all():
                return self._constant(node.id, text, text)
        if isinstance(value, tuple) and all(type(v) in (bool, int, float, str) for v in value):
            return self._constant(node.id, value, repr(value))
        if callable(value) and home == "builtins":
            return node.id
        raise ExportError(
            f"{_at(function, node)}: it reads {node.id}, which is {type(value).__name__}: only functions, numbers, "
            f"text and arrays of at most {_LARGEST} finite elements can leave with it"
        )

    def _constant(self, name: str, value: Any, text: str) -> str:
        constant = self.names.constant(name, value)
        self.constants[constant] = text
        return constant

    def _helper(self, inner: FunctionType, value: Any) -> str:
        key = inner, is_compiled(value)
        if key not in self._function_names:
            name = self._function_names[key] = self.names.fresh("_" + inner.__name__.strip("_<>"))
            self.functions.pop(name, None)
            options = dict(value.targetoptions) if is_compiled(value) else None
            self.functions[name] = _decorator(options) + self._text(inner, name, options is not None)
        return self._function_names[key]


class _Source(str):
    """The source of a default, as `inspect` writes it."""

    __repr__ = str.__str__


def _decorator(options: Mapping[str, Any] | None) -> str:
    if options is None:
        return ""
    enabled = {k: options[k] for k in ("error_model", "fastmath") if options.get(k)}
    texts = {k: literal(v) if isinstance(v, str) else repr(v) for k, v in enabled.items()}
    arguments = "".join(f", {key}={text}" for key, text in texts.items())
    return f"@njit(nogil=True{arguments})\n"


def _body(tree: ast.AST, text: Sequence[str], first: int) -> str:
    """The lines of a function's body, with its comments and without its docstring."""
    assert isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef))
    body = tree.body[1:] if ast.get_docstring(tree) is not None and len(tree.body) > 1 else tree.body
    start, above = body[0], max([tree.lineno, *(d.end_lineno or 0 for d in tree.decorator_list)])
    if body is not tree.body:
        above = tree.body[0].end_lineno or above
    begin = start.lineno
    while begin - 1 > above and text[begin - 1 - first].strip().startswith("#"):
        begin -= 1
    return textwrap.indent(textwrap.dedent("\n".join(text[begin - first :])), "    ").rstrip()


class _Renaming(ast.NodeTransformer):
    def __init__(self, changes: Mapping[tuple[int, int], vectors.Change]):
        self._changes = changes

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        old, new = self._changes.get((node.lineno, node.col_offset), ("", ""))
        return ast.Name(new, node.ctx) if old == ast.unparse(node) else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        old, new = self._changes.get((node.lineno, node.col_offset), ("", ""))
        return ast.Name(new, node.ctx) if old == node.id else node


def _at(function: FunctionType, node: ast.AST) -> str:
    return place_in(function.__code__, getattr(node, "lineno", 0))
