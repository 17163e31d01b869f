"""Steps that run as a Python call, between the compiled parts of a Program."""

from __future__ import annotations

from app.engine.compiled.steps import Lowered, Step
from app.graph.program import Operator


class PythonStep(Step):
    """Calls the operator's own function, on arrays of its own."""

    in_python = True

    def __init__(self, op: Operator, lowered: Lowered, reason: str):
        super().__init__(op, lowered, f"Python call: {reason}")
        self.reason = reason
