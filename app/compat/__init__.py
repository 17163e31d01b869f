"""Façades: the names of Paddle and PyTorch, so that programs written for them run unmodified.

A façade holds names and orders of arguments, and nothing else: what it lacks belongs in the framework below.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """`from app.compat import fluid` is `import paddle.fluid as fluid`; the façades themselves are submodules."""
    if name == "fluid":
        return importlib.import_module(f"{__name__}.paddle.fluid")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
