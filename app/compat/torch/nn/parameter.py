"""torch.nn.parameter"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.compat.torch._tensor import Tensor
from app.tensor import Parameter as FrameworkParameter


class Parameter(Tensor, FrameworkParameter):  # type: ignore[misc]
    """A Tensor that training changes; set as an attribute of a Module, it is one of its parameters."""

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True):
        array = np.empty(0, "float32") if data is None else data._array
        Tensor.__init__(self, array, stop_gradient=not requires_grad)
        self.persistable = True

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()
