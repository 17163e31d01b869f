"""Where a user's function is found again: `my_ops.py:swish` or `package.ops:swish`, as a file refers to it.

What a file refers to is not imported because the file says so. Whoever loads it names what may be used: by a
reference, by a file or module as a whole, or by handing over the module or the function itself.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from app import working_folder
from app.custom import shelf
from app.custom.lookup import OF_FILES, SHIPPED, module_of_file
from app.custom.numba_functions import function_name
from app.custom.source import home_of, written_as
from app.errors import OperatorError


class UnnamedOperatorError(OperatorError):
    """A file that needs functions of the user's which were not named: `needed` are the references to them."""

    def __init__(self, message: str, needed: Sequence[str] = ()):
        super().__init__(message)
        self.needed = tuple(needed)


class ChangedOperatorError(OperatorError):
    """A function that is no longer what a file was written with: `changed` is the reference to it."""

    def __init__(self, message: str, changed: str = ""):
        super().__init__(message)
        self.changed = changed


def reference_to(thing: Any, label: str) -> str:
    """The reference to a function, an operator or a class; an error for what no name leads to."""
    name = getattr(written_as(thing), "__qualname__", function_name(thing))
    module = sys.modules.get(home_of(thing))
    if module is not None:
        named = [key for key, value in vars(module).items() if value is thing]
        for candidate in (name, *named):
            if _inside(module, candidate) is thing:
                return f"{_home_text(module)}:{candidate}"
    kind = "a lambda" if "<lambda>" in name else f"{name}, which is made inside a function" if "<" in name else name
    raise OperatorError(
        f"{label} is made of {kind}, and a file can refer only to what has a name of its own in a module: "
        "define it with `def` or `class` at the top level of a file"
    )


def _inside(module: ModuleType, path: str) -> Any:
    """What a name of a module stands for; a path leads through classes, and through nothing else."""
    found: Any = module
    for step in path.split("."):
        found = vars(found).get(step) if found is module or isinstance(found, type) else None
    return getattr(found, "__func__", found)


def _home_text(module: ModuleType) -> str:
    """A module by its file, as a configuration names it, where it is no part of a package."""
    spec = getattr(module, "__spec__", None)
    name, file = spec.name if spec is not None else module.__name__, getattr(module, "__file__", None) or ""
    if name.startswith(OF_FILES) or not ("." in name or "-packages" in file):
        return Path(file).name if file.endswith(".py") else name
    return name


def parted(reference: str) -> tuple[str, str | None]:
    """The file or module of a reference, and the name in it; None where it is all of them."""
    home, colon, name = reference.rpartition(":")
    if not colon or not all(step.isidentifier() for step in name.split(".")):
        return reference, None
    return home, name


def _stem(home: str) -> str:
    return Path(home).stem if home.endswith(".py") else home.rpartition(".")[2]


@dataclass(frozen=True)
class _Grant:
    """What the user named: a file or module, perhaps one name in it, and how to get at what that stands for."""

    home: str
    name: str | None
    get: Callable[[str], Any]

    def covers(self, reference: str) -> bool:
        home, name = parted(reference)
        return self.name in (None, name) and _stem(self.home) == _stem(home)


class Trusted:
    """What may be used: the operators of the shelf, and what the user named."""

    def __init__(self, given: Any = ()):
        listed = given if isinstance(given, (list, tuple, set)) else [given]
        self._grants = [_grant(one) for one in listed]

    def covers(self, reference: str) -> bool:
        """Whether what a reference stands for may be used."""
        return self._on_shelf(reference) or any(grant.covers(reference) for grant in self._grants)

    def _on_shelf(self, reference: str) -> bool:
        home, _, short = parted(reference)[0].rpartition(".")
        return home == shelf.__name__ and short in SHIPPED

    def get(self, reference: str) -> Any:
        """What a reference stands for. Where it is in a file or module that was named, that is run now."""
        home, name = parted(reference)
        if self._on_shelf(reference):
            return _defined_in(importlib.import_module(home), str(name), reference)
        return next(grant for grant in self._grants if grant.covers(reference)).get(str(name))


def _grant(given: Any) -> _Grant:
    if isinstance(given, str):
        home, name = parted(given)
        return _Grant(home, name, lambda wanted: _defined_in(_module_of(home), wanted, given))
    if isinstance(given, ModuleType):
        return _Grant(_home_text(given), None, lambda wanted: _defined_in(given, wanted, given.__name__))
    if not callable(given):
        raise OperatorError(
            f"custom_ops: {given!r} names no operator; give 'file.py:name', 'module:name', a module or a function"
        )
    home, name = parted(reference_to(given, f"custom_ops: {function_name(given)}"))
    return _Grant(home, name, lambda wanted: given)


def _module_of(home: str) -> ModuleType:
    if home.endswith(".py"):
        return module_of_file(home)
    working_folder.search()
    try:
        return importlib.import_module(home)
    except ImportError as error:
        raise OperatorError(f"custom_ops: the module {home} cannot be imported: {error}") from error


def _defined_in(module: ModuleType, name: str, where: str) -> Any:
    """What a module defines under a name. What it has imported is not its own, and was not named."""
    found = _inside(module, name)
    if found is None or home_of(found) != module.__name__:
        raise OperatorError(f"{where}: it defines no {name!r} itself")
    return found
