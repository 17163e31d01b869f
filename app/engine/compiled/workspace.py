"""The memory that one call of a Program works in. Calls at the same time, or one inside another, do not share it."""

from __future__ import annotations

import numpy as np

from app.engine.compiled.buffers import Plan
from app.engine.compiled.kept import KeptRows
from app.engine.compiled.steps import Lowered


class Workspace:
    """Buffers for a batch, and what loops keep of their iterations."""

    def __init__(self, lowered: Lowered, plan: Plan):
        self._plan, self._rows = plan, -1
        self.buffers: list[np.ndarray] = []
        self.kept = KeptRows(lowered)

    def make_room_for(self, n: int) -> None:
        """Have buffers for a batch of n."""
        if n != self._rows:
            self.buffers = []  # given back before there are others
            self.buffers = [np.empty(buffer.elements(n), buffer.dtype) for buffer in self._plan.buffers]
            self._rows = n


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
            workspace = Workspace(self._lowered, self._plan)
        workspace.make_room_for(n)
        return workspace

    def put_back(self, workspace: Workspace) -> None:
        """Let later calls have it."""
        self._idle.append(workspace)
