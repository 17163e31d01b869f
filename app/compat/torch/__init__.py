"""PyTorch's names over this framework, as far as dense networks go."""

from app import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from app.compat.missing import missing
from app.compat.torch import (
    accelerator,
    autograd,
    backends,
    cuda,
    distributed,
    library,
    linalg,
    multiprocessing,
    nn,
    optim,
    testing,
    utils,
)
from app.compat.torch._compile import compile
from app.compat.torch._creation import CREATORS
from app.compat.torch._device import device
from app.compat.torch._dtype import NAMED, dtype, finfo, get_default_dtype, iinfo, set_default_dtype
from app.compat.torch._globals import inference_mode, is_floating_point, is_tensor, numel, result_type
from app.compat.torch._printing import set_printoptions
from app.compat.torch._random import Generator, default_generator, initial_seed, manual_seed, seed
from app.compat.torch._serialization import load, save
from app.compat.torch._size import Size
from app.compat.torch._table import FUNCTIONS
from app.compat.torch._tensor import Tensor, add_methods

__version__ = "2.13.0"  # the release whose behaviour tests/compat/pytorch records

add_methods()
globals().update(FUNCTIONS)
globals().update(CREATORS)
globals().update(NAMED)

__all__ = [
    *FUNCTIONS,
    *CREATORS,
    *NAMED,
    "Generator",
    "Size",
    "Tensor",
    "accelerator",
    "autograd",
    "backends",
    "compile",
    "cuda",
    "default_generator",
    "device",
    "distributed",
    "dtype",
    "enable_grad",
    "finfo",
    "get_default_dtype",
    "iinfo",
    "inference_mode",
    "initial_seed",
    "is_floating_point",
    "is_grad_enabled",
    "is_tensor",
    "library",
    "linalg",
    "load",
    "manual_seed",
    "multiprocessing",
    "nn",
    "no_grad",
    "numel",
    "optim",
    "result_type",
    "save",
    "seed",
    "set_default_dtype",
    "set_grad_enabled",
    "set_printoptions",
    "testing",
    "utils",
]

__getattr__ = missing(__name__)
