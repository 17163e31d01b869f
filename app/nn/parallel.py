"""Eager training on many ranks: a network whose gradients, after each backward pass, are the average over all ranks.

Every rank builds the same network and the same optimiser, and reads its own part of the data. As the layers start
with the parameters of rank 0 and take the same steps, they stay the same, bit for bit. A batch of n rows that is cut
into equal parts gives the gradient of the whole, as each part's loss is a mean. Where the parts are unequal, weight
the loss by `rows here * ranks / rows of all`: the average counts every rank alike, whatever its number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.ranks.messages import BUCKET, in_messages
from app.ranks.world import DistError, World
from app.tensor import Tensor
from app.tensor.tape import note_change


class Averaging:
    """Keeps a network equal on all ranks: it starts with the values of rank 0, and `average` its gradients."""

    def __init__(self, network: Any, world: World):
        self._network, self._world = network, world
        self._trained = [p for p in network.parameters() if not p.stop_gradient]
        if world.size == 1:
            return
        self._check_same()
        in_place([tensor._array for tensor in (*network.parameters(), *network.buffers())], world.broadcast)

    def _check_same(self) -> None:
        """Refuse networks that differ between ranks."""
        mine = [f"{path} {list(p.shape)} {p._array.dtype.name}" for path, p in self._network.named_parameters()]
        first, *others = self._world.gather(mine)
        for rank, theirs in enumerate(others, start=1):
            if theirs != first:
                here, there = next((a, b) for a, b in zip([*first, "none"], [*theirs, "none"], strict=False) if a != b)
                raise DistError(
                    f"{self._world.name(rank)} has another network than rank 0: its parameter is "
                    f"{there}, where that of rank 0 is {here}. Every rank has to build the same"
                )

    def average(self) -> None:
        """Replace the gradients with their averages, after a backward pass; one that no rank has stays None."""
        if self._world.size == 1:
            return
        there = np.array([p.grad is not None for p in self._trained], np.float32)
        arrays = [np.zeros_like(p._array) if p.grad is None else p.grad._array for p in self._trained]
        in_place([*arrays, there], self._world.allreduce)
        for parameter, array, ranks in zip(self._trained, arrays, there, strict=True):
            if ranks:
                array /= array.dtype.type(self._world.size)
                if parameter.grad is None:
                    parameter.grad = Tensor(array)


def in_place(arrays: list[np.ndarray], exchange: Any) -> None:
    """Apply an in-place function to arrays; non-contiguous ones are copied."""
    whole = [array if array.flags.c_contiguous else array.copy() for array in arrays]
    in_messages(whole, BUCKET, exchange)()
    for array, changed in zip(arrays, whole, strict=True):
        if array is not changed:
            array[...] = changed
        note_change(array)
