"""A small deep-learning framework for custom operators. Public names follow Paddle 2 wherever it has one."""

from app import autograd, nn, optimizer, static
from app.creation import arange, eye, full, linspace, normal, ones, rand, randint, randn, uniform, zeros
from app.custom import custom_op
from app.graph import disable_static, enable_static, in_dynamic_mode
from app.ops.creation import ones_like, zeros_like
from app.ops.definition import REGISTRY as _REGISTRY
from app.ops.dtype import NAMES as _DTYPES
from app.ops.dtype import get_default_dtype, set_default_dtype
from app.ops.random import seed
from app.ops.shaping import stack
from app.tensor import Tensor, enable_grad, grad, is_grad_enabled, no_grad, set_grad_enabled, to_tensor

__version__ = "0.1.0"

globals().update(_REGISTRY)  # every built-in operator is a function of the package: app.tanh, app.matmul …
globals().update({name: name for name in _DTYPES})  # app.float32, app.int64 …

__all__ = [
    "Tensor",
    "arange",
    "autograd",
    "custom_op",
    "disable_static",
    "enable_grad",
    "enable_static",
    "eye",
    "full",
    "get_default_dtype",
    "grad",
    "in_dynamic_mode",
    "is_grad_enabled",
    "linspace",
    "nn",
    "no_grad",
    "normal",
    "ones",
    "ones_like",
    "optimizer",
    "rand",
    "randint",
    "randn",
    "seed",
    "set_default_dtype",
    "set_grad_enabled",
    "stack",
    "static",
    "to_tensor",
    "uniform",
    "zeros",
    "zeros_like",
    *_REGISTRY,
    *_DTYPES,
]
