"""`torch.save` and `torch.load`: Tensors, numbers and text in dictionaries and lists. No file can run code."""

from __future__ import annotations

from typing import Any

from app import saving
from app.compat.torch._device import check_device
from app.compat.torch._tensor import Tensor
from app.compat.torch.nn._module import Module
from app.compat.torch.nn.parameter import Parameter
from app.errors import FileError
from app.tensor import Parameter as FrameworkParameter
from app.tensor import Tensor as FrameworkTensor


def save(obj: Any, f: Any) -> None:
    """Write a state dict, or other containers of Tensors, numbers and text, to a file in this framework's format."""
    if isinstance(obj, Module):
        raise FileError(
            f"torch.save: a whole {type(obj).__name__} is code as well as numbers, and no file here holds code; save "
            "model.state_dict(), and load it with model.load_state_dict(torch.load(path))"
        )
    saving.save(obj, f)


def load(f: Any, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote, here or in PyTorch. `weights_only` has no effect: no code is ever run."""
    if not callable(map_location):
        check_device(map_location)
    try:
        return saving.with_tensors(saving.load(f), _of_this_facade)
    except RecursionError as error:
        raise FileError(f"torch.load: {f} has lists or dictionaries that are nested too deeply") from error


def _of_this_facade(value: FrameworkTensor) -> Any:
    if isinstance(value, FrameworkParameter):
        return Parameter(value, requires_grad=not value.stop_gradient)
    return Tensor.result_class(value._array, value.stop_gradient)
