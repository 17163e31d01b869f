"""paddle.static.nn"""

from app.compat.missing import missing
from app.compat.table import everything
from app.static import create_parameter, py_func
from app.static import nn as _below

_TAKEN = everything(_below)
globals().update(_TAKEN)

__all__ = ["create_parameter", "py_func", *_TAKEN]

__getattr__ = missing(__name__)
