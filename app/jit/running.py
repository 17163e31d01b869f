"""Runs the Program of a traced function on arrays, with the chosen engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.engine.reference import ReferenceEngine
from app.errors import ProgramError
from app.graph.program import Program
from app.graph.scope import Scope

BACKENDS = ("compiled", "reference")
"""The engines that run traced functions."""


class Runner:
    """A Program with its fetches, compiled on the first run if its engine compiles."""

    def __init__(self, program: Program, fetch: Sequence[str], backend: str):
        self.program, self.fetch, self.backend = program, list(fetch), backend
        self._native: Any = None
        self._reference = ReferenceEngine()

    def run(self, feed: dict[str, np.ndarray], scope: Scope) -> list[Any]:
        """Run the Program; return the fetched values as new arrays."""
        native = self.native
        if isinstance(native, str) or not native.fits(feed):
            return [np.array(value) for value in self._reference.run(self.program, feed, self.fetch, scope)]
        return native.run_once(feed, scope)

    @property
    def native(self) -> Any:
        """Return the compiled Program, or the reason as text if it cannot be compiled."""
        if self._native is None or getattr(self._native, "is_out_of_date", False):
            self._native = self._compiled() if self.backend == "compiled" else "the reference engine was asked for"
        return self._native

    def _compiled(self) -> Any:
        from app.engine.compiled.engine import compile_program  # imported late, like Numba

        return compile_program(self.program, self.fetch)


def checked_backend(name: str | None) -> str:
    """Return the checked name of an engine; None means the compiled one."""
    if name not in (None, *BACKENDS):
        raise ProgramError(f"to_static has no backend {name!r}; there are {', '.join(BACKENDS)}")
    return name or BACKENDS[0]
