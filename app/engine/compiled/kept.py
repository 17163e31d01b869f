"""What loops keep of their iterations, where compiled code and Python calls meet: native rows, or arrays."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from app.engine.compiled import runtime
from app.engine.compiled.shapes import at
from app.engine.compiled.steps import Lowered, Step
from app.ops.form import Choice


class KeptRows:
    """The rows of a Program's loops. Compiled loops put theirs into memory that grows, and is used again."""

    def __init__(self, lowered: Lowered):
        self._lowered = lowered
        self._native = {name: runtime.no_rows() for name in sorted(lowered.kept)}
        weakref.finalize(self, runtime.release, list(self._native.values()))

    def __contains__(self, name: str | None) -> bool:
        return name in self._native

    @property
    def arguments(self) -> list[np.ndarray]:
        """What a function that does everything takes."""
        return list(self._native.values())

    def argument(self, name: str, values: Mapping[str, Any]) -> tuple[np.ndarray, Any]:
        """What compiled code takes to write rows, or to read them; and what has to stay alive while it runs."""
        if name not in values:
            return self._native[name], None
        rows = np.ascontiguousarray(values[name], self._lowered.dtype(name))
        return runtime.rows_of(rows), rows

    def read_by(self, step: Step, values: Mapping[str, Any], n: int) -> dict[str, np.ndarray]:
        """The rows that a Python call reads and compiled code wrote, as arrays."""
        return {str(name): self._array(str(name), n) for name in step.op.inputs if name in self and name not in values}

    def _array(self, name: str, n: int) -> np.ndarray:
        shape = tuple(at(size, n) for size in self._lowered.shapes[name][1:])
        return runtime.array_of(self._native[name], shape, self._lowered.dtype(name))


def fill_absent(step: Step, lowered: Lowered, values: dict[str, Any], n: int) -> None:
    """Give what a branch that did not run would have kept the shape that is declared; nothing reads its numbers."""
    if isinstance(step.op.definition.form, Choice):
        for name in step.op.outputs[step.op.attributes["results"] :]:
            shape = tuple(at(size, n) for size in lowered.shapes[name])
            if lowered.dtype(name) != "object" and np.shape(values[name]) != shape:
                values[name] = np.zeros(shape, lowered.dtype(name))
