"""Arguments of example calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def normal(*shapes: tuple[int, ...], and_then: tuple[Any, ...] = ()) -> Callable[[], tuple[Any, ...]]:
    """Tensors of normally distributed numbers, then other arguments."""

    def draw() -> tuple[Any, ...]:
        random = torch.Generator().manual_seed(0)
        return (*(torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes), *and_then)

    return draw


def positive(*shapes: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    """Tensors of numbers from 0.5 to 1.5."""

    def draw() -> tuple[Any, ...]:
        random = torch.Generator().manual_seed(0)
        return tuple(torch.rand(shape, generator=random, dtype=torch.float64) + 0.5 for shape in shapes)

    return draw
