"""What an operator is, and every built-in operator, a file for each family."""

from app.ops import (
    activation,
    arithmetic,
    creation,
    linear,
    logic,
    loss,
    math,
    reduction,
    shaping,
    update,
)
from app.ops.definition import REGISTRY, OpDef, apply

__all__ = [
    "REGISTRY",
    "OpDef",
    "activation",
    "apply",
    "arithmetic",
    "creation",
    "linear",
    "logic",
    "loss",
    "math",
    "reduction",
    "shaping",
    "update",
]
