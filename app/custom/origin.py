"""What a custom operator was made of, so that it can be made again by whoever has the functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.errors import OperatorError
from app.ops.definition import OpDef


@dataclass(frozen=True)
class Origin:
    """The hook that made an operator, the user's functions under its names for them, and its settings, plain data."""

    hook: str
    functions: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


Maker = Callable[[Mapping[str, Any], Mapping[str, Any], str], OpDef]

HOOKS: dict[str, Maker] = {}
"""What makes an operator of functions, settings and the place that registered it, by the name of the hook."""


def makes(hook: str) -> Callable[[Maker], Maker]:
    """Declare the function that makes an operator of this hook again."""

    def declare(maker: Maker) -> Maker:
        HOOKS[hook] = maker
        return maker

    return declare


@makes("gradient")
def _gradient(functions: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> OpDef:
    gradient = functions["operator"].own_gradient
    if gradient is None:
        raise OperatorError(f"{functions['operator'].label} has no gradient any more")
    found: OpDef = gradient
    return found
