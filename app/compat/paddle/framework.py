"""paddle.framework"""

from app import get_default_dtype, seed, set_default_dtype
from app.compat.missing import missing
from app.compat.paddle.base.framework import get_flags, set_flags
from app.device import CPUPlace, CUDAPlace
from app.nn import ParamAttr, create_parameter

__all__ = [
    "CPUPlace",
    "CUDAPlace",
    "ParamAttr",
    "create_parameter",
    "get_default_dtype",
    "get_flags",
    "seed",
    "set_default_dtype",
    "set_flags",
]

__getattr__ = missing(__name__)
