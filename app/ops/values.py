"""The types of what operators take and give, and of the functions that define them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from app.ops.spec import Spec

if TYPE_CHECKING:
    from app.ops.definition import OpDef

Array: TypeAlias = npt.NDArray[Any]
"""What kernels compute with."""


class Value(Protocol):
    """A Tensor or a Variable: it knows what applying an operator means in its mode."""

    @property
    def shape(self) -> Sequence[int]: ...

    @property
    def dtype(self) -> str: ...

    def apply_operator(
        self, definition: OpDef, inputs: Sequence[Operand], attributes: Attributes, into: Sequence[Value] | None = None
    ) -> Applied: ...

    def __neg__(self) -> Applied: ...
    def __eq__(self, other: object) -> Applied: ...
    def __ne__(self, other: object) -> Applied: ...
    def __add__(self, other: Operand) -> Applied: ...
    def __radd__(self, other: Operand) -> Applied: ...
    def __sub__(self, other: Operand) -> Applied: ...
    def __rsub__(self, other: Operand) -> Applied: ...
    def __mul__(self, other: Operand) -> Applied: ...
    def __rmul__(self, other: Operand) -> Applied: ...
    def __truediv__(self, other: Operand) -> Applied: ...
    def __rtruediv__(self, other: Operand) -> Applied: ...
    def __pow__(self, other: Operand) -> Applied: ...
    def __lt__(self, other: Operand) -> Applied: ...
    def __le__(self, other: Operand) -> Applied: ...
    def __gt__(self, other: Operand) -> Applied: ...
    def __ge__(self, other: Operand) -> Applied: ...


Number: TypeAlias = "bool | int | float"
Operand: TypeAlias = "Value | Array | np.generic | Number | None"
"""An input of an operator. None stands for one that is left out."""
Setting: TypeAlias = Any
"""The value of an attribute: plain data, such as numbers, names, tuples and read-only arrays, as its operator says."""
Attributes: TypeAlias = Mapping[str, Setting]
"""The settings of a call, by name."""
Applied: TypeAlias = Any
"""What a call gives: a value of the same kind as the inputs, a tuple of them, or None where there is no output. Callers
know which of these it is from the operator, and compute with it as with a number."""

Results: TypeAlias = "Array | np.generic | tuple[Array | np.generic, ...] | None"
"""What a kernel returns: an output, or a tuple of them."""
Kernel: TypeAlias = "Callable[..., Results]"
"""Arrays by place and attributes by name to outputs."""
Infer: TypeAlias = "Callable[..., Spec | Sequence[Spec]]"
"""Specs of the inputs by place and attributes by name to those of the outputs."""
Prepare: TypeAlias = "Callable[[list[Any]], Sequence[Any]]"
"""The inputs of a call to those of the kernel, Tensors and Variables to values of the same mode."""
Gradient: TypeAlias = Any
"""A gradient in the mode of the walk: a Tensor, a Variable or an array; None where there is none."""
Gradients: TypeAlias = "Gradient | Sequence[Gradient]"
"""What a rule gives: the gradient of its input, or those of all inputs."""
GradientRule: TypeAlias = "Callable[..., Gradients]"
"""What it asks for by name (see `app.ops.rules`) to the gradients of the inputs that it is for."""
OnnxRule: TypeAlias = "Callable[..., Any]"
"""The maker of nodes, and what it asks for by name, to the values of ONNX that stand for the outputs."""
