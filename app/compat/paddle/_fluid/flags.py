"""Modes and flags of Paddle's engine."""

from typing import Any

import app as _package
from app.graph import disable_static, dynamic_mode, enable_static, in_dynamic_mode

app: Any = _package

in_dygraph_mode = in_dynamic_mode
enable_dygraph, disable_dygraph = disable_static, enable_static

_flags: dict[str, Any] = {}


def set_flags(flags: dict[str, Any]) -> None:
    """Store flags of Paddle's own engine; they have no effect here."""
    _flags.update(flags)


def get_flags(flags: Any) -> dict[str, Any]:
    """Return the stored flags."""
    names = [flags] if isinstance(flags, str) else flags
    return {name: _flags.get(name) for name in names}


def run_check() -> None:
    """Run a small computation and print that it worked."""
    with dynamic_mode():
        x = app.ones([2, 2])
        x.stop_gradient = False
        (x @ x).sum().backward()
    print("paddle is a façade over opsmith here, and it works.")
