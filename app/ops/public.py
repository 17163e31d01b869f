"""The public operators and functions: those declared with `public`. All others are internal."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from app.ops.values import Applied

F = TypeVar("F", bound=Callable[..., Applied])


class Public(NamedTuple):
    """The public names of an operator, or of a function composed of operators."""

    function: Callable[..., Applied]
    names: tuple[str, ...]
    """Its names in the package `opsmith`."""
    method: bool
    """Whether Tensors and Variables have methods of these names."""
    in_place: bool
    """Whether Tensors also have in-place methods, `name_`."""


PUBLIC: dict[str, Public] = {}
"""The public operators and functions, by each of their names."""


def public(*others: str, name: str = "", method: bool = False, in_place: bool = False) -> Callable[[F], F]:
    """Declare an operator or a function public, under its own name (or `name`) and under `others`.

    With `in_place`, its result must have the shape and type of its input.
    """

    def declare(function: F) -> F:
        own = name or function.__name__.rstrip("_")
        entry = Public(function, (own, *others), method, in_place)
        PUBLIC.update(dict.fromkeys(entry.names, entry))
        if hasattr(function, "public"):  # the definition of an operator
            function.public = entry
        return function

    return declare
