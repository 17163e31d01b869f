"""Worlds of ranks that are only pretended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from app.ranks.world import World


@contextmanager
def using(world: World) -> Iterator[World]:
    """A block in which this process is one of these ranks."""
    with patch("app.ranks.world._world", world):
        yield world
