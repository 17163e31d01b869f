"""The definition of an operator, and the built-in operators, one module for each family."""

from app.ops import (  # noqa: F401 - each registers its operators
    activation,
    arithmetic,
    broadcasting,
    byte_products,
    convolution,
    creation,
    drawing,
    gathering,
    indexing,
    joining,
    linear,
    logic,
    loss,
    math,
    pooling,
    reduction,
    rounding,
    shaping,
    softmax,
    sorting,
    training_mode,
    update,
)
from app.ops.definition import REGISTRY, OpDef, apply

__all__ = ["REGISTRY", "OpDef", "apply"]
