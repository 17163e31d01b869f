"""Façades: `torch` and `paddle`, as far as programs with operators of their own use them.

They translate names and rules; what computes is the framework below.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """`from opsmith.compat import fluid` is `import paddle.fluid as fluid`; the façades themselves are submodules."""
    if name == "fluid":
        return importlib.import_module(f"{__name__}.paddle.fluid")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
