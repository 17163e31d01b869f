"""Types of the inputs and outputs of operators, and of the functions that define operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

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
"""A function that returns gradients; its parameter names select what it is given (see `opsmith.ops.rules`)."""


OnnxRule: TypeAlias = "Callable[..., Any]"
"""A function that builds ONNX nodes and returns the values of the outputs, None for one that nothing reads.

Its parameters are named `onnx`, after inputs and attributes of the operator, or `attributes` for all of these. A method
of `onnx` that is named after an ONNX operator appends a node (see `opsmith.onnx.nodes`), as does arithmetic on values.
"""
