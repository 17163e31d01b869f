"""Operators of PyTorch, JAX and Paddle become ordinary operators here, and operators leave for other frameworks.

`framework` says what an adapter offers, `function` makes a class of `Function` for an operator that comes in, and
`torch`, `jax` and `paddle` are the adapters, each imported only if the program has imported its framework. What leaves
is written by `out`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def to_torch(operator: Any, *examples: Any) -> Callable[..., Any]:
    """An operator as a function on tensors of PyTorch, with autograd, torch.compile and vmap.

    Functions of single numbers become tensor expressions, which have forward mode, too. Functions on arrays run on the
    memory of the tensors, on the CPU; they are made for the number of axes that `examples` have, an array for each
    input, or that the operator was called with first.
    """
    from app.bridge.out.torch import MODULES  # imported late: few programs need it

    return MODULES.function(operator, *examples)


def to_jax(operator: Any, *examples: Any) -> Callable[..., Any]:
    """An operator as a function on arrays of JAX, with jit, grad and vmap.

    Functions of single numbers become jnp expressions, which XLA fuses, and have forward mode, too. Functions on arrays
    are called by XLA itself, on the CPU; they are made for the number of axes that `examples` have, an array for each
    input, or that the operator was called with first.
    """
    from app.bridge.out.jax import MODULES  # imported late: few programs need it

    return MODULES.function(operator, *examples)


__all__ = ["to_jax", "to_torch"]


def __dir__() -> list[str]:
    return __all__
