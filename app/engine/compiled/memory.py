"""Memory of the variables of a running Program: buffers and the scope. Concurrent and nested calls do not share
buffers.
"""

from __future__ import annotations

from math import prod

import numpy as np

from app.engine.compiled import runtime
from app.engine.compiled.buffers import Plan
from app.engine.compiled.steps import Lowered
from app.errors import ShapeError
from app.graph.scope import Scope

# Buffers


def _aligned(elements: int, dtype: str) -> np.ndarray:
    """Allocate memory aligned to a cache line: vectors that cross a line take twice as long to read."""
    size = elements * np.dtype(dtype).itemsize
    room = np.empty(size + runtime.CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % runtime.CACHE_LINE
    return room[begin : begin + size].view(dtype)


class Workspace:
    """The memory of one call: buffers for a batch."""

    def __init__(self, lowered: Lowered, plan: Plan):
        self._lowered, self._plan, self.rows = lowered, plan, -1
        self.buffers: list[np.ndarray] = []

    def make_room_for(self, n: int) -> None:
        """Grow the buffers for a batch of n."""
        if n != self.rows:
            self.buffers = []  # free the old buffers first
            self.buffers = [_aligned(buffer.elements(n), buffer.dtype) for buffer in self._plan.buffers]
            self.rows = n

    def views(self) -> dict[str, np.ndarray]:
        """Return all variables in buffers."""
        lowered, place = self._lowered, self._plan.place
        names = [name for name in (*place, *lowered.roots) if lowered.root(name) in place]
        return {name: self.view(name, self.rows) for name in names}

    def view(self, name: str, n: int) -> np.ndarray:
        """Return a variable's array for a batch of n, which may be smaller than the buffers."""
        shape = self._lowered.shape_at(name, n)
        return self.buffers[self._plan.place[self._lowered.root(name)]][: prod(shape)].reshape(shape)


class Workspaces:
    """The workspaces of a Program: one per concurrent call, reused by later calls."""

    def __init__(self, lowered: Lowered, plan: Plan):
        self._lowered, self._plan = lowered, plan
        self._idle: list[Workspace] = []  # pop and append are atomic

    def new(self, n: int) -> Workspace:
        """Return a workspace that is never shared."""
        workspace = Workspace(self._lowered, self._plan)
        workspace.make_room_for(n)
        return workspace

    def take(self, n: int) -> Workspace:
        """Reserve a workspace for a batch of n until `put_back`."""
        try:
            workspace = self._idle.pop()
        except IndexError:
            return self.new(n)
        workspace.make_room_for(n)
        return workspace

    def put_back(self, workspace: Workspace) -> None:
        """Release a workspace for later calls."""
        self._idle.append(workspace)


# Persistable variables


def persistable(name: str, lowered: Lowered, scope: Scope) -> np.ndarray:
    """Return the array of a persistable variable in a scope, which compiled code updates in place."""
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
    if array is not value and scope.values.get(name) is value:  # another thread may have replaced it
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
    """Return whether an array owns its memory, so that modifying it affects no other array."""
    return array.flags.owndata or (type(array) is np.ndarray and not isinstance(array.base, (np.ndarray, type(None))))
