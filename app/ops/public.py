"""What users may call: operators and functions made of operators are internal unless they are declared `public`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from app.ops.values import Applied

F = TypeVar("F", bound=Callable[..., Applied])


class Public(NamedTuple):
    """How users reach an operator, or a function made of operators."""

    function: Callable[..., Applied]
    names: tuple[str, ...]
    """Its names in the package `app`."""
    method: bool
    """Whether Tensors and Variables have methods of these names, whose first argument is the value itself."""
    in_place: bool
    """Whether Tensors also have methods `name_`, which change them."""


PUBLIC: dict[str, Public] = {}
"""Everything that is public, by each of its names."""


def public(*others: str, name: str = "", method: bool = False, in_place: bool = False) -> Callable[[F], F]:
    """Declare an operator or a function public, under its own name (or `name`) and others.

    A result that takes the place of its input (`in_place`) must have the shape and type of the input, or show the same
    elements in another shape.
    """

    def declare(function: F) -> F:
        own = name or function.__name__.rstrip("_")
        entry = Public(function, (own, *others), method, in_place)
        PUBLIC.update(dict.fromkeys(entry.names, entry))
        if hasattr(function, "public"):  # the definition of an operator
            function.public = entry
        return function

    return declare
