"""Operators of PyTorch, JAX and Paddle as ordinary operators: which module of `app/bridge` knows those of a framework.

A framework is asked only if the program has imported it, and its module is imported only then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from app.ops.definition import OpDef
from app.reading import PACKAGE

_BRIDGES = {"torch": ".bridge.torch", "jax": ".bridge.jax", "paddle": ".bridge.paddle"}


def operator_of_framework(thing: Any) -> Any:
    """A class of Function that runs an operator of another framework; None for anything else.

    The class is the same one for the same operator.
    """
    if isinstance(thing, OpDef):
        return None
    if isinstance(thing, type) and hasattr(thing, "foreign"):
        return thing
    for framework, module in _BRIDGES.items():
        loaded = sys.modules.get(framework)
        if getattr(loaded, "__name__", "") == framework:  # else it is a façade of ours
            operator = import_module(module, PACKAGE).recognise(thing)
            if operator is not None:
                return operator
    return None


def parts_of(thing: Any) -> Sequence[Any]:
    """What the user wrote: of an operator of another framework its functions or its class, else the thing itself."""
    other = operator_of_framework(thing)
    return [thing] if other is None else other.foreign.functions or [other.foreign.thing]


def adapter_of(thing: Any) -> Any:
    """The adapter of the framework that an operator belongs to; None for an operator of ours."""
    other = operator_of_framework(thing)
    return None if other is None else other.foreign.framework
