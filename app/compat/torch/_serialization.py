"""`torch.save` and `torch.load`: Tensors, numbers and words in dictionaries and lists, without pickle.

A whole Module is code as well as numbers. It is pickled, as PyTorch does, and read only with `weights_only=False`.
"""

from __future__ import annotations

import os
import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from app import saving
from app.compat.torch._device import check_device
from app.compat.torch._tensor import Tensor
from app.compat.torch.nn._module import Module
from app.compat.torch.nn.parameter import Parameter
from app.files import write_whole
from app.tensor import Parameter as FrameworkParameter
from app.tensor import Tensor as FrameworkTensor


def save(obj: Any, f: Any) -> None:
    """Write a state dict, a dictionary of such, or a whole Module to a file."""
    if not isinstance(obj, Module):
        saving.save(obj, f)
        return
    content = pickle.dumps(obj)  # all of it before a file that is there is touched
    if hasattr(f, "write"):
        f.write(content)
    else:
        write_whole(Path(os.fspath(f)), content)


def load(f: Any, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote. No code is run, whatever the file holds, unless `weights_only=False` allows it."""
    if not callable(map_location):
        check_device(map_location)
    if not weights_only:
        with nullcontext(f) if hasattr(f, "read") else open(f, "rb") as file:
            start = file.tell()
            pickled = file.read(1) == pickle.PROTO
            file.seek(start)
            if pickled:
                return pickle.load(file)
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
