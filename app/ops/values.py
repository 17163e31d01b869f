"""Types of the inputs and outputs of operators, and of the functions that define operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from app.ops.size import AnySize, Shape
from app.ops.spec import Spec

if TYPE_CHECKING:
    from app.ops.methods import ValueMethods

Array: TypeAlias = npt.NDArray[Any]
"""The arrays that kernels take and return."""


Value: TypeAlias = "ValueMethods"
"""A Tensor or a Variable. Its `apply_operator` runs an operator now, or appends it to a Program."""
Number: TypeAlias = "bool | int | float"
Element: TypeAlias = Any
"""An element in a function that compiled loops call: a NumPy scalar, or an array if the function is the kernel too."""
Operand: TypeAlias = "Value | Array | np.generic | Number | None"
"""An input of an operator; None for an omitted optional input."""
Setting: TypeAlias = Any
"""The value of an attribute: immutable data such as a number, a string, a tuple or a read-only array. Each operator
defines the types of its own attributes."""
Attributes: TypeAlias = Mapping[str, Setting]
"""The attributes of a call, by name."""
Applied: TypeAlias = Any
"""The result of a call: a value of the same kind as the inputs, a tuple of them, or None if the operator has no output.
Which of these it is depends on the operator, so callers use it without a check."""

Results: TypeAlias = "Array | np.generic | tuple[Array | np.generic, ...] | None"
"""What a kernel returns: one output, a tuple of outputs, or None."""
Kernel: TypeAlias = "Callable[..., Results]"
"""A function of arrays (positional) and attributes (keywords) that returns the outputs."""
Infer: TypeAlias = "Callable[..., Spec | Sequence[Spec]]"
"""A function of the Specs of inputs (positional) and attributes (keywords) that returns the Specs of the outputs."""
Prepare: TypeAlias = "Callable[[list[Any]], Sequence[Operand]]"
"""A function that converts the inputs of a call for the kernel; Tensors stay Tensors, and Variables stay Variables."""
Gradient: TypeAlias = Any
"""A gradient: a Tensor, a Variable or an array, depending on the backward pass; None if there is no gradient."""
Gradients: TypeAlias = "Gradient | Sequence[Gradient]"
"""What a gradient rule returns: the gradient of one input, or a sequence with the gradients of all inputs."""
GradientRule: TypeAlias = "Callable[..., Gradients]"
"""A function that returns gradients; its parameter names select what it is given (see `app.ops.rules`)."""


class OnnxValue(Protocol):
    """A value in the ONNX graph being built (see `app.onnx.nodes`). Arithmetic on it appends nodes."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def rank(self) -> int: ...
    @property
    def floating(self) -> bool: ...
    def with_shape(self, shape: Sequence[AnySize]) -> OnnxValue: ...
    def __add__(self, other: Any) -> OnnxValue: ...
    def __radd__(self, other: Any) -> OnnxValue: ...
    def __sub__(self, other: Any) -> OnnxValue: ...
    def __rsub__(self, other: Any) -> OnnxValue: ...
    def __mul__(self, other: Any) -> OnnxValue: ...
    def __rmul__(self, other: Any) -> OnnxValue: ...
    def __truediv__(self, other: Any) -> OnnxValue: ...
    def __rtruediv__(self, other: Any) -> OnnxValue: ...
    def __neg__(self) -> OnnxValue: ...


class OnnxNodes(Protocol):
    """The ONNX graph being built. A method named after an ONNX operator appends a node and returns its outputs."""

    def __getattr__(self, op_type: str) -> Callable[..., Any]: ...


OnnxResult: TypeAlias = "OnnxValue | Sequence[OnnxValue | None]"
"""The ONNX values of the outputs of an operator; None for an output that nothing in the graph reads."""
OnnxRule: TypeAlias = "Callable[..., OnnxResult]"
"""A function that builds ONNX nodes and returns their values; its parameters are named `onnx`, after inputs and
attributes of the operator, or `attributes` for all of these."""
