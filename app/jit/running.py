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
    """A Program with what is fetched of it: made native when it is first run, where its engine does so."""

    def __init__(self, program: Program, fetch: Sequence[str], backend: str):
        self.program, self.fetch, self.backend = program, list(fetch), backend
        self._native: Any = None
        self._reference = ReferenceEngine()

    def run(self, feed: dict[str, np.ndarray], scope: Scope) -> list[Any]:
        """The fetched values, as arrays of their own."""
        native = self.native
        if isinstance(native, str) or not native.fits(feed):
            return [np.array(value) for value in self._reference.run(self.program, feed, self.fetch, scope)]
        return native.run_once(feed, scope)

    @property
    def native(self) -> Any:
        """The compiled Program, or a text that says why it cannot be compiled."""
        if self._native is None:
            self._native = self._compiled() if self.backend == "compiled" else "the reference engine was asked for"
        return self._native

    def _compiled(self) -> Any:
        from app.engine.compiled.engine import compile_program  # imported late, as Numba is

        return compile_program(self.program, self.fetch)


def checked_backend(name: str | None) -> str:
    """The name of an engine; None is the compiled one."""
    if name not in (None, *BACKENDS):
        raise ProgramError(f"to_static has no backend {name!r}; there are {', '.join(BACKENDS)}")
    return name or BACKENDS[0]
