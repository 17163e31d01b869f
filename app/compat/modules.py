"""The modules of a façade, which are made from dictionaries, and the error about a name that they do not have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from app.errors import AppError

PREFIX = f"{__package__}."
"""The prefix of a façade's modules."""


class MissingNameError(AppError, AttributeError):
    """A name that is not part of a façade."""


class MissingModuleError(AppError, ModuleNotFoundError):
    """A module that is not part of a façade."""


def no_name(owner: str, name: str) -> str:
    """The message about a missing name of a module or class."""
    owner = owner.removeprefix(PREFIX)
    real = "Paddle" if owner.startswith("paddle") else "PyTorch"
    return (
        f"{owner} has no {name!r} here: opsmith has the names that programs with operators of their own use; "
        f"an operator of real {real} is checked and trained as it is, see docs/bridge.md"
    )


def missing(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a façade's module."""

    def __getattr__(name: str) -> NoReturn:  # noqa: N807 - required by Python
        raise MissingNameError(no_name(module, name), name=name)

    return __getattr__


def add_names(module: str, names: Mapping[str, Any]) -> None:
    """Add names to a module; a dictionary among them becomes a module. Errors about arguments name functions so."""
    for name, value in names.items():
        inner = value
        if isinstance(value, dict):
            path = f"{module}.{name}"
            inner = sys.modules[path] = ModuleType(path, path.removeprefix(PREFIX))
            vars(inner).update(__path__=[], __getattr__=missing(path))
            add_names(path, value)
        for function in (value, getattr(value, "__wrapped__", None)):
            if isinstance(function, FunctionType) and "<" in function.__qualname__:  # made by a function, or a lambda
                function.__qualname__ = f"{module}.{name}".removeprefix(PREFIX)
        setattr(sys.modules[module], name, inner)
