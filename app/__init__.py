"""A small deep-learning framework for custom operators. Public names follow Paddle 2 wherever it has one."""

from app import working_folder as working_folder  # before all others: it sees to where they are found

# isort: split
from typing import Any as _Any

from app import (
    _importing as _importing,
)
from app import (
    autograd,
    device,
    distributed,
    errors,
    io,
    jit,
    linalg,
    metric,
    nn,
    onnx,
    optimizer,
    regularizer,
    static,
    vision,
)
from app.creation import (
    arange,
    broadcast_shape,
    clone,
    empty,
    eye,
    full,
    is_tensor,
    linspace,
    logspace,
    meshgrid,
    normal,
    ones,
    rand,
    randint,
    randint_like,
    randn,
    randperm,
    standard_normal,
    tolist,
    tril_indices,
    triu_indices,
    uniform,
    zeros,
)
from app.custom import custom_op
from app.device import CPUPlace, get_device, is_compiled_with_cuda, set_device
from app.graph import disable_static, enable_static, in_dynamic_mode
from app.limits import finfo, iinfo
from app.model import Model, callbacks, summary
from app.nn import ParamAttr, create_parameter
from app.nn.parallel import DataParallel
from app.ops.dtype import NAMES as _DTYPES
from app.ops.dtype import get_default_dtype, set_default_dtype
from app.ops.gone import INSTEAD as _INSTEAD
from app.ops.gone import OF_PACKAGE as _OF_PACKAGE
from app.ops.gone import without as _without
from app.ops.public import PUBLIC as _PUBLIC
from app.ops.random import get_rng_state, seed, set_rng_state
from app.saving import load, save
from app.tensor import Tensor, enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled, to_tensor

__version__ = "0.1.0"

globals().update({name: entry.function for name, entry in _PUBLIC.items()})
globals().update({name: name for name in _DTYPES})  # app.float32, app.int64 …


def __getattr__(name: str) -> _Any:
    raise AttributeError(_without("app", name, _INSTEAD | _OF_PACKAGE))


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


__all__ = [
    "Tensor",
    "vision",
    "summary",
    "set_device",
    "save",
    "regularizer",
    "metric",
    "load",
    "is_tensor",
    "is_compiled_with_cuda",
    "io",
    "get_device",
    "device",
    "create_parameter",
    "DataParallel",
    "distributed",
    "errors",
    "callbacks",
    "ParamAttr",
    "Model",
    "CPUPlace",
    "arange",
    "autograd",
    "broadcast_shape",
    "clone",
    "custom_op",
    "disable_static",
    "empty",
    "enable_grad",
    "enable_static",
    "eye",
    "finfo",
    "full",
    "get_default_dtype",
    "get_rng_state",
    "grad",
    "iinfo",
    "in_dynamic_mode",
    "is_grad_enabled",
    "jit",
    "linalg",
    "linspace",
    "logspace",
    "meshgrid",
    "nn",
    "no_grad",
    "normal",
    "ones",
    "onnx",
    "optimizer",
    "rand",
    "randint",
    "randint_like",
    "randn",
    "randperm",
    "seed",
    "set_default_dtype",
    "set_grad_enabled",
    "set_rng_state",
    "standard_normal",
    "static",
    "to_tensor",
    "tolist",
    "tril_indices",
    "triu_indices",
    "uniform",
    "zeros",
    *_PUBLIC,
    *_DTYPES,
]
