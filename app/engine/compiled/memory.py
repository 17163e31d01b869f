"""Where the variables of a Program lie while it runs: in buffers, in a scope, or in the rows that loops keep.

Calls at the same time, or one inside another, do not share buffers.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from app.engine.compiled import runtime
from app.engine.compiled.buffers import Plan
from app.engine.compiled.steps import Lowered, Step
from app.errors import ShapeError
from app.graph.scope import Scope
from app.ops.lowering import Choice

# Buffers


def _aligned(elements: int, dtype: str) -> np.ndarray:
    """Memory that begins with a cache line: vectors that reach into two lines take twice as long to read."""
    size = elements * np.dtype(dtype).itemsize
    room = np.empty(size + runtime.CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % runtime.CACHE_LINE
    return room[begin : begin + size].view(dtype)


class Workspace:
    """The memory that one call works in: buffers for a batch, and what loops keep of their iterations."""

    def __init__(self, lowered: Lowered, plan: Plan):
        self._lowered, self._plan, self.rows = lowered, plan, -1
        self.buffers: list[np.ndarray] = []
        self.kept = KeptRows(lowered)

    def make_room_for(self, n: int) -> None:
        """Have buffers for a batch of n."""
        if n != self.rows:
            self.buffers = []  # given back before there are others
            self.buffers = [_aligned(buffer.elements(n), buffer.dtype) for buffer in self._plan.buffers]
            self.rows = n

    def views(self) -> dict[str, np.ndarray]:
        """All variables that lie in buffers."""
        lowered, place = self._lowered, self._plan.place
        names = [name for name in (*place, *lowered.roots) if lowered.root(name) in place]
        return {name: self.view(name, self.rows) for name in names}

    def view(self, name: str, n: int) -> np.ndarray:
        """A variable in the buffer that it lies in, for a batch of n, which may be smaller than the buffers are for."""
        shape = self._lowered.shape_at(name, n)
        return self.buffers[self._plan.place[self._lowered.root(name)]][: prod(shape)].reshape(shape)


class Workspaces:
    """As many workspaces as there were calls of a Program at once, each used again by later ones."""

    def __init__(self, lowered: Lowered, plan: Plan):
        self._lowered, self._plan = lowered, plan
        self._idle: list[Workspace] = []  # taking from a list, and putting back, are atomic

    def new(self, n: int) -> Workspace:
        """A workspace that nobody else will ever get."""
        workspace = Workspace(self._lowered, self._plan)
        workspace.make_room_for(n)
        return workspace

    def take(self, n: int) -> Workspace:
        """A workspace for a batch of n, the caller's alone until it is put back."""
        try:
            workspace = self._idle.pop()
        except IndexError:
            return self.new(n)
        workspace.make_room_for(n)
        return workspace

    def put_back(self, workspace: Workspace) -> None:
        """Let later calls have it."""
        self._idle.append(workspace)


# What persists


def persistable(name: str, lowered: Lowered, scope: Scope) -> np.ndarray:
    """The array of a persistable variable in a scope, which compiled code changes in place."""
    declared = lowered.shape_at(name, 0)
    value = scope.values.get(name)
    if value is None and not _is_read_first(name, lowered):
        value = scope.values[name] = np.zeros(declared, lowered.dtype(name))
    if value is None:
        value = scope.value(name)
    array = np.require(value, lowered.dtype(name), ["C", "W"])
    if not _is_whole(array):
        array = array.copy()
    if array.shape != declared:
        raise ShapeError(f"variable {name} is declared with shape {list(declared)}, but has {list(array.shape)}")
    if array is not value and scope.values.get(name) is value:  # another thread may have put a new one there
        scope.values[name] = array
    return array.reshape(1) if array.ndim == 0 else array


def _is_read_first(name: str, lowered: Lowered) -> bool:
    for step in lowered.steps:
        if name in step.op.inputs:
            return True
        if name in step.op.outputs:
            return False
    return True


def _is_whole(array: np.ndarray) -> bool:
    """Whether an array is not a part of another, nor of a file: what changes it changes nothing else."""
    return array.flags.owndata or (type(array) is np.ndarray and not isinstance(array.base, (np.ndarray, type(None))))


# What loops keep of their iterations


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
        return runtime.array_of(self._native[name], self._lowered.shape_at(name, n)[1:], self._lowered.dtype(name))


def fill_absent(step: Step, lowered: Lowered, values: dict[str, Any], n: int) -> None:
    """Give what a branch that did not run would have kept the shape that is declared; nothing reads its numbers."""
    if isinstance(step.op.definition.lowering, Choice):
        for name in step.op.outputs[step.op.attributes["results"] :]:
            shape = lowered.shape_at(name, n)
            if lowered.dtype(name) != "object" and np.shape(values[name]) != shape:
                values[name] = np.zeros(shape, lowered.dtype(name))
