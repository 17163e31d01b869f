"""paddle"""

import app
from app.compat.missing import missing
from app.compat.paddle import (
    autograd,
    base,
    callbacks,
    dataset,
    device,
    distributed,
    fluid,
    framework,
    io,
    jit,
    linalg,
    metric,
    nn,
    optimizer,
    reader,
    regularizer,
    static,
    tensor,
    utils,
    version,
    vision,
)
from app.compat.paddle.framework import get_flags, set_flags
from app.compat.table import everything, table
from app.data.readers import batch
from app.device import CPUPlace, CUDAPlace, get_device, is_compiled_with_cuda, set_device
from app.distributed import DataParallel
from app.limits import finfo, iinfo
from app.nn import ParamAttr, create_parameter

__version__ = version.full_version

_TAKEN = everything(tensor) | table(
    app,
    """
    Tensor to_tensor is_tensor seed save load Model summary
    grad no_grad enable_grad set_grad_enabled is_grad_enabled
    enable_static disable_static in_dynamic_mode get_default_dtype set_default_dtype
    bool uint8 int8 int16 int32 int64 float16 float32 float64
    """,
)
globals().update(_TAKEN)

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "DataParallel",
    "ParamAttr",
    "autograd",
    "base",
    "batch",
    "callbacks",
    "create_parameter",
    "dataset",
    "device",
    "distributed",
    "finfo",
    "fluid",
    "framework",
    "get_device",
    "get_flags",
    "iinfo",
    "io",
    "jit",
    "is_compiled_with_cuda",
    "linalg",
    "metric",
    "nn",
    "optimizer",
    "reader",
    "regularizer",
    "set_device",
    "set_flags",
    "static",
    "tensor",
    "utils",
    "version",
    "vision",
    *_TAKEN,
]

__getattr__ = missing(__name__)
