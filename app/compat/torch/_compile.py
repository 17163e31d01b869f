"""`torch.compile`, which returns what it is given: a traced function knows the framework's own methods only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """The function or module itself, which runs eagerly. To run it natively, use app.jit.to_static."""
    return (lambda function: function) if model is None else model
