"""What an operator is that is broken on purpose, and the decorator that makes one of a function.

A function that is decorated with `broken` gives the two passes: `forward(*inputs)`, and `backward(*inputs, *outputs,
*gradients of the outputs)`. With `layer=True` it gives a class instead, written on Tensors over the base class that it
gets. Its docstring says what is wrong; `check` and `message` say which check of ours finds it, and with which words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Broken:
    """One operator, and how it is found out."""

    name: str
    what: str
    make: Callable[..., Any]
    check: str
    message: str
    shapes: Sequence[tuple[int, ...]] = ((4, 6),)
    told: Callable[..., Any] | None = None
    """The shapes of the outputs, as the operator claims them, from those of the inputs; None: that of the first."""
    outputs: int = 1
    layer: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    """What else it declares of itself."""


BROKEN: list[Broken] = []
"""All of them, in the order in which they are defined."""


def broken(check: str, message: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    known = {k: options.pop(k) for k in ("shapes", "told", "outputs", "layer") if k in options}

    def add(make: Callable[..., Any]) -> Callable[..., Any]:
        BROKEN.append(Broken(make.__name__, make.__doc__ or "", make, check, message, options=options, **known))
        return make

    return add
