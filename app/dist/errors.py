"""What can go wrong among ranks."""

from __future__ import annotations

from app.errors import AppError


class DistError(AppError, RuntimeError):
    """Ranks that were started, or asked for something, as they cannot be."""


class RankError(DistError):
    """A rank that failed, or that the others wait for in vain: raised at every rank that is still there."""
