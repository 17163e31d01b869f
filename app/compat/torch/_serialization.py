"""`torch.save` and `torch.load`: Tensors, numbers and words in dictionaries and lists, without pickle."""

from __future__ import annotations

from typing import Any

from app import saving
from app.compat.torch._device import check_device
from app.compat.torch._tensor import Tensor
from app.compat.torch.nn.parameter import Parameter
from app.tensor import Parameter as FrameworkParameter
from app.tensor import Tensor as FrameworkTensor


def save(obj: Any, f: Any) -> None:
    """Write a state dict, or a dictionary of such, to a file."""
    saving.save(obj, f)


def load(f: Any, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote. No code is run, whatever the file holds."""
    if not callable(map_location):
        check_device(map_location)
    return _with_tensors(saving.load(f))


def _with_tensors(value: Any) -> Any:
    """The value with every Tensor in it made one of this façade."""
    if isinstance(value, FrameworkParameter):
        return Parameter(value, requires_grad=not value.stop_gradient)
    if isinstance(value, FrameworkTensor):
        return Tensor.result_class(value._array, value.stop_gradient)
    if isinstance(value, dict):
        return {key: _with_tensors(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_with_tensors(item) for item in value)
    return value
