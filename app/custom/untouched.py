"""Whether users' functions leave alone what they are given, as others still read it. Looked at where that is asked for.

An engine may hand out its own memory, or a copy: a function that writes into it works with one engine and not with
the next. Looking costs a copy, so training does it in the step that warms up, and then trusts the function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from app.custom.proofs.reading import parse
from app.errors import OperatorError


class _Looking:
    """The switch: one object, so that a call reads a single attribute."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


looking = _Looking()


@contextmanager
def inputs_watched() -> Iterator[None]:
    """Inside the block a user's function that writes into the arrays that it is given is an error."""
    outside, looking.on = looking.on, True
    try:
        yield
    finally:
        looking.on = outside


def call_watched(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function, and refuse what it returns if it wrote into an array among its arguments."""
    before = [a.copy() if isinstance(a, np.ndarray) else None for a in args]
    result = function(*args, **kwargs)
    for place, (array, copy) in enumerate(zip(args, before, strict=True)):
        if copy is not None and array.tobytes() != copy.tobytes():
            raise OperatorError(
                f"it wrote into its argument {place + 1}, which others still read; compute a new array instead, or "
                "write into a copy"
            )
    return result


def writes_into(function: Any, places: Collection[int]) -> bool:
    """Whether the source of a function shows that it assigns to items of its parameters at these places."""
    parsed = parse(function)
    if parsed is None:
        return False
    tree, _ = parsed
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    arrays = {a.arg for place, a in enumerate(tree.args.args) if place in places} - assigned
    return any(_stores_into(node, arrays) for node in ast.walk(tree))


def _stores_into(node: ast.AST, arrays: set[str]) -> bool:
    if not (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)):
        return False
    owner = node.value
    while isinstance(owner, (ast.Subscript, ast.Attribute)):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id in arrays
