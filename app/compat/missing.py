"""Errors about names that a façade does not have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from types import ModuleType
from typing import NoReturn

from app.errors import AppError
from app.ops.gone import INSTEAD, without

PREFIX = f"{__package__}."
"""The prefix of a façade's modules."""


class MissingNameError(AppError, AttributeError):
    """A name that is not part of a façade. `hasattr` raises it often, so its message is computed lazily."""

    def __init__(self, message: Callable[[], str] | str):
        super().__init__()
        self._message = message

    def __str__(self) -> str:
        return self._message if isinstance(self._message, str) else self._message()


class MissingImportError(AppError, ImportError):
    """A name that cannot be imported, as it is not part of a façade."""


class MissingModuleError(AppError, ModuleNotFoundError):
    """A module that is not part of a façade."""


def missing(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a façade's module: raises an error that suggests the closest name."""

    def __getattr__(name: str) -> NoReturn:  # noqa: N807 - required by Python
        raise MissingNameError(lambda: _about(module, name))

    return __getattr__


def _about(module: str, name: str) -> str:
    if name in INSTEAD:
        return without(f"the façade {shown(module)}", name)
    return f"{shown(module)} has no {name!r} in this façade{closest(module, name)}"


def shown(module: str) -> str:
    """Return a module's name as programs write it."""
    return module.removeprefix(PREFIX)


def closest(module: str, name: str) -> str:
    """Return the end of a message about a name: another module that has it, or a similar name."""
    root = shown(module).partition(".")[0]
    own = names_of(sys.modules[module]) if module in sys.modules else []
    found = [f"{other}.{name}" for other, names in _modules(root) if name in names]
    if not found:
        alike = _same_letters(name, own) or get_close_matches(name, own)
        found = [f"{shown(module)}.{other}" for other in alike]
    if found:
        return f"; closest: {', '.join(found[:3])}"
    return f"; `python -m app run --coverage {root}` lists what is there"


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a façade's module."""
    return list(getattr(module, "__all__", ()))


def _modules(root: str) -> Iterator[tuple[str, list[str]]]:
    """Return the loaded modules of a façade with their names, parents first."""
    inside = [name for name in sys.modules if f"{name}.".startswith(f"{PREFIX}{root}.")]
    for name in sorted(inside, key=lambda name: (name.count("."), name)):
        yield shown(name), names_of(sys.modules[name])


def _same_letters(name: str, names: list[str]) -> list[str]:
    return [other for other in names if other.lower() == name.lower()]
