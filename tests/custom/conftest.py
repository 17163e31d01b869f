"""Each test builds Programs of its own; `mode` is one way to call an operator, on Variables and on Tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from own_programs import own_programs

import app
from app import static

__all__ = ["own_programs"]


class InProgram:
    """Inputs are data, outputs are made with `create_var`, gradients are fetched."""

    def __init__(self) -> None:
        self.feed: dict[str, np.ndarray] = {}
        self.program = static.default_main_program()

    def input(self, value: Any, stop_gradient: bool = False) -> static.Variable:
        array = value if isinstance(value, np.ndarray) else app.to_tensor(value).numpy()
        variable = static.data(f"x{len(self.feed)}", array.shape, array.dtype)
        variable.stop_gradient = stop_gradient
        self.feed[variable.name] = array
        return variable

    def output(self, shape: Sequence[int], dtype: str = "float32") -> static.Variable:
        return self.program.current_block().create_var(shape=shape, dtype=dtype)

    def values(self, *fetched: Any) -> list[np.ndarray]:
        return static.Executor().run(self.program, self.feed, fetched)

    def gradients(self, target: Any, inputs: Sequence[Any]) -> list[np.ndarray]:
        return self.values(*static.gradients(target, list(inputs)))


class OnTensors:
    """Inputs and outputs are Tensors."""

    def input(self, value: Any, stop_gradient: bool = False) -> app.Tensor:
        return app.to_tensor(value, stop_gradient=stop_gradient)

    def output(self, shape: Sequence[int], dtype: str = "float32") -> app.Tensor:
        return app.zeros(shape, dtype)

    def values(self, *fetched: Any) -> list[np.ndarray]:
        return [t.numpy() for t in fetched]

    def gradients(self, target: Any, inputs: Sequence[Any]) -> list[np.ndarray]:
        return [g.numpy() for g in app.grad(target, list(inputs))]


@pytest.fixture(params=[InProgram, OnTensors])
def mode(request: pytest.FixtureRequest) -> Any:
    """A way to call an operator: in a Program, or on Tensors."""
    return request.param()
