"""Functions that are made of operators: they work wherever operators do, and their gradients come from those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Every such function by name, and other names of operators; they are functions of the package."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Those among them that are methods of every value, too: their first parameter is the value."""


def composed(function: F) -> F:
    """Make a function known under its name: to the package, and as a method of every value."""
    METHODS[function.__name__.rstrip("_")] = function
    return of_package(function)


def of_package(function: F) -> F:
    """Make a function known to the package alone, as it does not begin with a value."""
    FUNCTIONS[function.__name__.rstrip("_")] = function
    return function


def also_named(target: Callable[..., Any], *names: str) -> None:
    """Give an operator, or a function made of operators, further names."""
    FUNCTIONS.update(dict.fromkeys(names, target))
    METHODS.update(dict.fromkeys(names, target))
