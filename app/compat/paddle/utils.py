"""paddle.utils"""

from typing import Any

import app as _package
from app.compat.missing import missing
from app.graph import dynamic_mode

app: Any = _package


def run_check() -> None:
    """Compute something, and say that it could be."""
    with dynamic_mode():
        x = app.ones([2, 2])
        x.stop_gradient = False
        (x @ x).sum().backward()
    print("paddle is a façade over opsmith here, and it works.")


__all__ = ["run_check"]

__getattr__ = missing(__name__)
