"""paddle.fluid.dygraph: Tensors in programs that otherwise build Programs."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from app import saving
from app.graph import dynamic_mode
from app.tensor import Parameter, Tensor, to_tensor


def guard(place: Any = None) -> AbstractContextManager[None]:
    """Run operators eagerly inside the block."""
    return dynamic_mode()


def to_variable(value: Any, name: str | None = None, zero_copy: bool | None = None, dtype: Any = None) -> Tensor:
    """Convert an array to a Tensor; return a Tensor unchanged."""
    return value if isinstance(value, Tensor) else to_tensor(value, dtype)


def save_dygraph(state_dict: Any, model_path: str) -> None:
    """Write parameters to MODEL_PATH.pdparams, or the state of an optimiser to MODEL_PATH.pdopt."""
    of_a_network = any(isinstance(value, Parameter) for value in state_dict.values())
    saving.save(state_dict, model_path + (".pdparams" if of_a_network else ".pdopt"))


def load_dygraph(model_path: str) -> tuple[Any, Any]:
    """Load the parameters, and the state of an optimiser if its file exists."""
    parameters, optimizer = model_path + ".pdparams", model_path + ".pdopt"
    return saving.load(parameters), saving.load(optimizer) if Path(optimizer).exists() else None
