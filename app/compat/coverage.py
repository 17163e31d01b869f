"""Listings of the modules of a façade and the names in each."""

from __future__ import annotations

import importlib
import sys
from textwrap import fill
from types import ModuleType

from app.compat.missing import PREFIX, names_of, shown


def coverage(root: str) -> dict[str, list[str]]:
    """Return the names in each module of a façade, without submodules."""
    package = importlib.import_module(PREFIX + root)
    inside = [name for name in sys.modules if name.startswith(f"{package.__name__}.") and "._" not in name]
    modules = [package, *(sys.modules[name] for name in sorted(inside))]
    names = {shown(module.__name__): sorted(_plain_names(module), key=str.lower) for module in modules}
    return {module: offered for module, offered in names.items() if offered}


def _plain_names(module: ModuleType) -> list[str]:
    return [name for name in names_of(module) if not isinstance(getattr(module, name), ModuleType)]


def listing(root: str) -> str:
    """Return the coverage of a façade as text."""
    return "\n\n".join(f"{module} ({len(names)})\n{_wrapped(names)}" for module, names in coverage(root).items())


def _wrapped(names: list[str]) -> str:
    indent = "    "
    return fill(", ".join(names), 100, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
