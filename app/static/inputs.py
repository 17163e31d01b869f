"""Inputs of Programs: `data`, `InputSpec` and `DataFeeder`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from app.errors import ProgramError
from app.graph import Program, Variable, default_main_program
from app.ops.dtype import canonical, fitting
from app.ops.spec import UNKNOWN, plain_sizes


def data(name: str, shape: Sequence[int | None], dtype: Any = "float32", lod_level: int = 0) -> Variable:
    """A variable that is fed in every run. -1 or None stands for an axis of any size."""
    block = default_main_program().global_block()
    return block.create_var(name, shape, dtype, is_data=True, stop_gradient=True)


class InputSpec:
    """The description of an input: its shape, element type and, optionally, name."""

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None):
        self.shape = plain_sizes(shape)
        self.dtype = canonical(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """The InputSpec of a Tensor or a Variable."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: np.ndarray, name: str | None = None) -> InputSpec:
        """The InputSpec of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def __repr__(self) -> str:
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name})"


class DataFeeder:
    """Converts a batch of examples, each with one item for each variable, to a feed for an Executor."""

    def __init__(self, feed_list: Sequence[Variable | str], place: Any = None, program: Program | None = None):
        block = (program or default_main_program()).global_block()
        self._variables = [block.var(item) if isinstance(item, str) else item for item in feed_list]

    def feed(self, iterable: Iterable[Sequence[Any]]) -> dict[str, np.ndarray]:
        """The feed: for each variable the array of its items."""
        rows = list(iterable)
        for number, row in enumerate(rows):
            if len(row) != len(self._variables):
                names = ", ".join(v.name for v in self._variables)
                raise ProgramError(
                    f"example {number} has {len(row)} items, but {len(self._variables)} are fed: {names}"
                )
        return {v.name: self._column(v, [row[i] for row in rows]) for i, v in enumerate(self._variables)}

    def _column(self, variable: Variable, items: Sequence[Any]) -> np.ndarray:
        arrays = [np.asarray(fitting(variable.name, item, variable.dtype)) for item in items]
        if UNKNOWN not in variable.shape[1:]:
            arrays = [array.reshape(variable.shape[1:]) for array in arrays]
        return np.stack(arrays)
