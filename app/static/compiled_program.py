"""A Program with the wish that it be compiled, as Paddle's programs express it."""

from __future__ import annotations

from typing import Any

from app.graph import Program


class CompiledProgram:
    """An Executor runs it with the compiled engine, whichever engine it uses otherwise."""

    engine = "compiled"

    def __init__(self, program: Program, build_strategy: Any = None):
        self.program = program

    def with_data_parallel(self, loss_name: str | None = None, **settings: Any) -> CompiledProgram:
        """The same: there is one device to run on."""
        return self


class _Strategy:
    """Settings of another framework's engine: they can be set, and change nothing here."""


class BuildStrategy(_Strategy):
    """How a Program should be rewritten before it is run."""


class ExecutionStrategy(_Strategy):
    """With how many threads a Program should be run."""
