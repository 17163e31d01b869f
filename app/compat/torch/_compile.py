"""`torch.compile`, which gives back what it is given: PyTorch's methods are not those of a Program's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compile(model: Callable[..., Any] | None = None, **settings: Any) -> Any:
    """The function or module itself, which runs eagerly and gives the same; to run natively, use app.jit.to_static."""
    return (lambda function: function) if model is None else model
