"""Creates the modules of a façade from a table of names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import FunctionType, ModuleType
from typing import Any

from app.compat.missing import PREFIX, missing, shown
from app.compat.table import everything


def make_modules(rows: str) -> None:
    """Add the names in the rows to each module; create modules that have no file.

    A row is a module, where the names come from, and the names: `paddle.io app.io *`. The source is a module, a
    dictionary in one (`app.module:DICTIONARY`), or a module of the façade in an earlier row. `new=old` renames; `*`
    is all that the source offers or, if it does not list that, all public functions and classes that it defines.
    """
    offered: dict[str, dict[str, Any]] = {}
    shared: dict[str, str] = {}
    for row in rows.replace("\n    ", " ").strip().splitlines():
        name, source, *words = row.split()
        for parent in _parents(name):
            offered.setdefault(parent, {})
        if source in offered:
            offered[name] |= offered[source]
            shared[name] = source
        else:
            offered[name] |= _names(source, words)
    modules = {name: _module(PREFIX + name) for name in sorted(offered, key=lambda name: name.count("."))}
    for name, names in offered.items():
        inside = {other.rpartition(".")[2]: m for other, m in modules.items() if other.rpartition(".")[0] == name}
        if name in shared and not name.startswith(shared[name]):
            inside |= {k: m for k, m in vars(modules[shared[name]]).items() if m in modules.values()}
        module = modules[name]
        vars(module).setdefault("__path__", [])  # as of a package: Python asks the importer for missing names
        vars(module).update(inside | names)  # torch.autograd.gradcheck is a function and a module
        listed = sorted(key for key in {*names, *inside} if key[0] != "_")
        vars(module).update(__all__=listed, __getattr__=missing(module.__name__))


def _parents(name: str) -> list[str]:
    """Return a module and its parents, the outermost first."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _names(source: str, words: list[str]) -> dict[str, Any]:
    path, _, dictionary = source.partition(":")
    below: Any = import_module(path)
    known: Mapping[str, Any] = getattr(below, dictionary) if dictionary else vars(below)
    if words == ["*"]:
        return dict(known) if dictionary else everything(below) if hasattr(below, "__all__") else _defined(below)
    pairs = [word.partition("=") for word in words]
    return {
        name: known[old or name] if (old or name) in known else getattr(below, old or name) for name, _, old in pairs
    }


def _defined(module: ModuleType) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(module).items()
        if name[0] != "_" and isinstance(value, (FunctionType, type)) and value.__module__ == module.__name__
    }


def _module(name: str) -> ModuleType:
    """Return a module by name: already loaded, loaded from a file, or new."""
    if name in sys.modules:
        return sys.modules[name]
    parent, _, last = name.rpartition(".")
    if PathFinder.find_spec(name, getattr(sys.modules[parent], "__path__", [])) is not None:
        return import_module(name)
    made = module_from_spec(ModuleSpec(name, None, is_package=True))
    made.__doc__ = shown(name)
    sys.modules[name] = made
    setattr(sys.modules[parent], last, made)
    return made
