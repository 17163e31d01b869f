"""`CompiledProgram`, Paddle's way to request compilation."""

from __future__ import annotations

from typing import Any

from app.graph import Program


class CompiledProgram:
    """A Program that an Executor runs with the compiled engine."""

    engine = "compiled"

    def __init__(self, program: Program, build_strategy: Any = None):
        self.program = program

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: Any = None,
        exec_strategy: Any = None,
        share_vars_from: Any = None,
        places: Any = None,
    ) -> CompiledProgram:
        """Returns itself: there is one device."""
        return self


class _Strategy:
    """Settings that Paddle programs make. They have no effect."""


class BuildStrategy(_Strategy):
    """Settings of compilation. They have no effect."""


class ExecutionStrategy(_Strategy):
    """Settings of execution. They have no effect."""
