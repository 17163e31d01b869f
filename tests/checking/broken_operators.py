"""Operators broken on purpose, each in one way, as functions on NumPy arrays that any framework can hook in."""

import broken_gradients  # noqa: F401, I001 - their order is that of the table in docs/checking.md
import broken_behaviour  # noqa: F401
from broken import BROKEN, Broken

__all__ = ["BROKEN", "Broken"]
