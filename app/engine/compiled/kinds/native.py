"""The base of all compiled steps."""

from __future__ import annotations

from abc import ABC, abstractmethod

from app.engine.compiled.steps import Step
from app.engine.compiled.writer import Writer
from app.graph.program import Operator


class NotNativeError(Exception):
    """Why an operator has to run as a Python call."""


class NativeStep(Step, ABC):
    """A step that is compiled."""

    @abstractmethod
    def write(self, out: Writer) -> None:
        """Add the statements that do it."""

    @property
    def comment(self) -> list[str]:
        """What it computes, in the words of the Program."""
        return [_short(op) for op in self.members]


def _short(op: Operator) -> str:
    text = str(op)
    return text if len(text) <= 110 else text[:107] + "..."
