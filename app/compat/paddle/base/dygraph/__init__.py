"""paddle.fluid.dygraph: Tensors in programs that build Programs otherwise."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from app import saving
from app.compat.missing import missing
from app.compat.paddle.base.dygraph import nn
from app.compat.paddle.base.dygraph.nn import BatchNorm, Conv2D, Linear, Pool2D
from app.graph import disable_static, dynamic_mode, enable_static, in_dynamic_mode
from app.nn import Layer, Sequential
from app.tensor import Parameter, Tensor, grad, no_grad, to_tensor


def guard(place: Any = None) -> AbstractContextManager[None]:
    return dynamic_mode()


def to_variable(value: Any, name: str | None = None, zero_copy: bool | None = None, dtype: Any = None) -> Tensor:
    return value if isinstance(value, Tensor) else to_tensor(value, dtype)


def save_dygraph(state_dict: Any, model_path: str) -> None:
    """What an optimiser remembers goes to a file of its own, beside that of the parameters."""
    of_a_network = any(isinstance(value, Parameter) for value in state_dict.values())
    saving.save(state_dict, model_path + (".pdparams" if of_a_network else ".pdopt"))


def load_dygraph(model_path: str) -> tuple[Any, Any]:
    parameters, optimizer = model_path + ".pdparams", model_path + ".pdopt"
    return saving.load(parameters), saving.load(optimizer) if Path(optimizer).exists() else None


enabled, enable_dygraph, disable_dygraph = in_dynamic_mode, disable_static, enable_static

__all__ = [
    "BatchNorm",
    "Conv2D",
    "Layer",
    "Linear",
    "Pool2D",
    "Sequential",
    "disable_dygraph",
    "enable_dygraph",
    "enabled",
    "grad",
    "guard",
    "load_dygraph",
    "nn",
    "no_grad",
    "save_dygraph",
    "to_variable",
]

__getattr__ = missing(__name__)
