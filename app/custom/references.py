"""References to custom operators in saved files: where their functions are found, and their fingerprints.

A file refers to a function as `ops/my_ops.py:swish`, by a path from the working folder, or `package.ops:swish`. It is
imported only if the user who loads the file allows it: with a reference, a whole file or module by name, or the module
or function itself. Paths are compared resolved: a file of the same name elsewhere is another one.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from app.custom import shelf
from app.custom.foreign import parts_of
from app.custom.lookup import OF_FILES, SHIPPED, module_at, named_in, parted
from app.custom.operator import HOOKS, CustomOperator, home_of, written_as
from app.engine.compiled.fingerprint import full_fingerprint
from app.errors import OperatorError, ProgramError
from app.files import without_tilde
from app.functions import function_name
from app.graph.serialise import DAMAGE_ERRORS, value_from_data, value_to_data
from app.ops.definition import OpDef
from app.reading import public_name

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The version of Python, on which fingerprints depend."""


class UnnamedOperatorError(OperatorError):
    """A file needs functions that the user did not allow: `needed` are the references to them."""

    def __init__(self, message: str, needed: Sequence[str] = ()):
        super().__init__(message)
        self.needed = tuple(needed)


class ChangedOperatorError(OperatorError):
    """A function changed since a file was written: `changed` is the reference to it, `problem` the first sentence."""

    def __init__(self, problem: str, advice: str = "", changed: str = ""):
        super().__init__(f"{problem}. {advice}" if advice else problem)
        self.problem, self.changed = problem, changed


def reference_to(thing: Any, label: str) -> str:
    """The reference to a function, an operator or a class; an error if it has no name in a module."""
    name = getattr(written_as(thing), "__qualname__", function_name(thing))
    module = sys.modules.get(home_of(thing))
    if module is not None:
        named = [key for key, value in vars(module).items() if value is thing]
        for candidate in (name, *named):
            if named_in(module, candidate) is thing:
                return f"{_home_text(module)}:{candidate}"
    kind = "a lambda" if "<lambda>" in name else f"{name}, which is made inside a function" if "<" in name else name
    raise OperatorError(
        f"{label} is made of {kind}, and a file can only refer to something that has a name in a module: "
        "define it with `def` or `class` at the top level of a file"
    )


def _home_text(module: ModuleType) -> str:
    """The name of a module, or the path of its file from the working folder if it is not part of a package."""
    spec = getattr(module, "__spec__", None)
    name, file = spec.name if spec is not None else module.__name__, getattr(module, "__file__", None) or ""
    if name.startswith(OF_FILES) or not ("." in name or "-packages" in file):
        return os.path.relpath(file) if file.endswith(".py") else name
    return public_name(name)


def _place(home: str) -> Path | str:
    """The resolved path of a file, or the name of a module: equal for two spellings of one file."""
    return without_tilde(home).resolve() if home.endswith(".py") else home


@dataclass(frozen=True)
class _Grant:
    """What the user named or passed: a file or a module, or one name in it."""

    home: str
    name: str | None
    passed: Any = None
    """The module, function, class or operator that was passed. Its file may have moved since a file referred to it."""

    def covers(self, reference: str) -> bool:
        home, name = parted(reference)
        if self.name not in (None, name):
            return False
        has_moved = _defines(self.passed, str(name)) if self.name is None else self.passed is not None
        return has_moved or _place(self.home) == _place(home)

    def get(self, name: str) -> Any:
        if self.name is not None and self.passed is not None:
            return self.passed
        return _defined_in(self.passed or module_at(self.home), name, self.home)


class Allowed:
    """What may be loaded: the operators of the shelf, and what the user named or passed."""

    def __init__(self, custom_ops: Any = ()):
        listed = custom_ops if isinstance(custom_ops, (list, tuple, set)) else [custom_ops]
        self._grants = [_grant(one) for one in listed]

    def covers(self, reference: str) -> bool:
        """Whether a reference may be loaded."""
        return self._on_shelf(reference) or any(grant.covers(reference) for grant in self._grants)

    def _on_shelf(self, reference: str) -> bool:
        home, _, short = parted(reference)[0].rpartition(".")
        return home == public_name(shelf.__name__) and short in SHIPPED

    def get(self, reference: str) -> Any:
        """Load a reference; runs its file or module."""
        home, name = parted(reference)
        if self._on_shelf(reference):
            return _defined_in(importlib.import_module(home), str(name), reference)
        return next(grant for grant in self._grants if grant.covers(reference)).get(str(name))

    def require(self, references: Sequence[str], by: str, how: str = "") -> None:
        """Refuse references that may not be loaded, and load nothing. `by` is what refers to them; `how` is the
        beginning of the call that reads it, for the advice.
        """
        unnamed = [reference for reference in references if not self.covers(reference)]
        if unnamed:
            raise UnnamedOperatorError(self.refusal(unnamed, by, how), unnamed)

    def refusal(self, references: Sequence[str], by: str, how: str) -> str:
        """The message about references that may not be loaded."""
        return (
            f"{by} needs {', '.join(references)}: code of yours, or of whoever made the file, which is run only if you "
            f"name it. If you trust it, say where it lies: {how}, custom_ops={list(references)})"
        )


def _grant(named: Any) -> _Grant:
    if isinstance(named, str):
        return _Grant(*parted(named))
    if isinstance(named, ModuleType):
        return _Grant(_home_text(named), None, named)
    if not callable(named):
        raise OperatorError(
            f"custom_ops: {named!r} names no operator; give 'file.py:name', 'module:name', a module or a function"
        )
    return _Grant(*parted(reference_to(named, f"custom_ops: {function_name(named)}")), named)


def _defines(module: ModuleType | None, name: str) -> bool:
    """Whether a module itself defines a name, which it does not if it imported it."""
    if module is None:
        return False
    thing = named_in(module, name)
    return thing is not None and home_of(thing) == module.__name__


def _defined_in(module: ModuleType, name: str, where: str) -> Any:
    """What a module itself defines under a name; a name that it imported is not allowed with it."""
    if not _defines(module, name):
        raise OperatorError(f"{where}: it defines no {name!r} itself")
    return named_in(module, name)


class OperatorTable:
    """The numbered custom operators of a file that is being written."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}

    def number_of(self, definition: OpDef) -> int:
        """The number of an operator, which is entered at the first call."""
        if id(definition) not in self._numbers:
            entry = self._entry(definition)
            self._numbers[id(definition)] = len(self.entries)
            self.entries.append(entry)
        return self._numbers[id(definition)]

    def _entry(self, definition: OpDef) -> dict[str, Any]:
        if not isinstance(definition, CustomOperator):
            raise OperatorError(f"{definition.label} cannot be written to a file: it does not record how it was made")
        origin = definition.origin
        try:
            settings = {name: value_to_data(value) for name, value in origin.settings.items()}
        except ProgramError as error:
            raise OperatorError(
                f"{definition.label} has an argument that cannot be written to a file: {error}"
            ) from None
        functions = {name: self._function(thing, definition) for name, thing in origin.functions.items()}
        described = {"name": definition.name, "where": definition.where, "hook": origin.hook, "functions": functions}
        return {**described, "settings": settings} if settings else described

    def _function(self, thing: Any, definition: OpDef) -> dict[str, Any]:
        if isinstance(thing, CustomOperator) and thing is not definition:
            return {"operator": self.number_of(thing)}
        return {
            "from": reference_to(thing, definition.label),
            "fingerprint": full_fingerprint(*parts_of(thing)),
            "python": _PYTHON,
        }


def read_operators(
    entries: Any, file: str, custom_ops: Any, accept_changed: Collection[str], how: str
) -> Callable[[int], OpDef]:
    """The custom operators of a file by their numbers. Nothing is imported unless everything needed was allowed.

    `how` is the beginning of the call that reads the file, for the advice in errors.
    """
    allowed = custom_ops if isinstance(custom_ops, Allowed) else Allowed(custom_ops)
    try:
        needed = list(dict.fromkeys(_references(entries)))
    except DAMAGE_ERRORS as error:
        raise ProgramError(f"{file}: its custom operators cannot be read: {type(error).__name__} {error}") from error
    allowed.require(needed, file, how)
    operators: list[OpDef] = []

    def function(written: Any) -> Any:
        if "operator" in written:
            return operators[_index(written["operator"], operators)]
        reference, expected, python = written["from"], written["fingerprint"], written["python"]
        thing = allowed.get(reference)
        if reference not in accept_changed and full_fingerprint(*parts_of(thing)) != expected:
            raise ChangedOperatorError(
                f"{file} was written with another {reference}: its code, or a function or a value that it reads, has "
                "changed since"
                if python == _PYTHON
                else f"{file} was written with Python {python}, so whether {reference} is the same cannot be told with "
                f"Python {_PYTHON}",
                f"To use it as it is now: {how}, accept_changed=[{reference!r}])",
                reference,
            )
        return thing

    for entry in entries:
        try:
            functions = {name: function(written) for name, written in entry["functions"].items()}
            settings = {name: value_from_data(value) for name, value in entry.get("settings", {}).items()}
            operators.append(HOOKS[entry["hook"]](functions, settings, entry["where"]))
        except OperatorError:
            raise
        except DAMAGE_ERRORS as error:
            raise ProgramError(f"{file}: a custom operator cannot be read: {error!r}") from error
    return lambda number: operators[_index(number, operators)]


def _index(number: Any, operators: Sequence[OpDef]) -> int:
    if not isinstance(number, int) or not 0 <= number < len(operators):
        raise ValueError(f"there is no custom operator number {number!r}")
    return number


def _references(entries: Any) -> Iterator[str]:
    for entry in entries:
        for written in entry["functions"].values():
            if "operator" not in written:
                yield written["from"] + ""
