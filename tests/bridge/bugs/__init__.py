"""Bugs of custom operators in public repositories, each written anew in a few lines, wrong and mended.

They are the yardstick of `check`: what it finds, what PyTorch's and JAX's own checks find, and whether it raises an
alarm about a mended operator. `python tests/bridge/against_others.py` writes the table into docs/checking.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Operator = Callable[..., Any]


@dataclass(frozen=True)
class Bug:
    """One mistake."""

    where: str
    """The repository, and the number of the issue or pull request."""
    mistake: str
    make: Callable[[bool], Operator]
    """Returns the operator: mended if True."""
    example: Callable[[], tuple[Any, ...]]
    """Returns arguments of a call."""

    @property
    def name(self) -> str:
        return self.make.__name__


TORCH: list[Bug] = []
JAX: list[Bug] = []


def bug(where: str, mistake: str, example: Callable[[], tuple[Any, ...]], of: list[Bug] = TORCH) -> Any:
    """Record a function that makes an operator, wrong or mended."""

    def record(make: Callable[[bool], Operator]) -> Callable[[bool], Operator]:
        of.append(Bug(where, mistake, make, example))
        return make

    return record
