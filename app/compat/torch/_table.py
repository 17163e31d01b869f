"""The functions of `torch` and the methods of its Tensors, which the modules of this façade register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import app
from app.compat.table import table
from app.tensor.inplace import in_place_method

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of the module `torch` that take a Tensor first."""
METHODS: dict[str, Callable[..., Any]] = {}
"""The methods of Tensors."""


def register(
    *names: str, function: bool = True, method: bool = True, in_place: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Offer a function under its own name and others: in the module, as a method, and as a method `name_`."""

    def decorate(decorated: Callable[..., Any]) -> Callable[..., Any]:
        for name in (decorated.__name__, *names):
            if function:
                FUNCTIONS[name] = decorated
            if method:
                METHODS[name] = decorated
            if in_place:
                METHODS[name + "_"] = in_place_method(name + "_", decorated)
        return decorated

    return decorate


def rows(text: str, check: Callable[..., Any] = lambda function: function, **places: bool) -> None:
    """Register the functions that the rows of a table describe, each decorated with `check`."""
    for names, function in _by_function(table(app, text, out=True)):
        register(*names[1:], **places)(check(function))


def _by_function(found: dict[str, Callable[..., Any]]) -> list[tuple[list[str], Callable[..., Any]]]:
    grouped: dict[int, tuple[list[str], Callable[..., Any]]] = {}
    for name, function in found.items():
        grouped.setdefault(id(function), ([], function))[0].append(name)
    return list(grouped.values())
