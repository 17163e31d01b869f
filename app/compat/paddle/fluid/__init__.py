"""paddle.fluid: Paddle 1"""

from app.compat.missing import missing
from app.compat.paddle import base as _base
from app.compat.paddle.base import backward, compiler, core, dygraph, executor, framework, param_attr, unique_name
from app.compat.paddle.fluid import clip, initializer, io, layers, optimizer, regularizer
from app.compat.table import everything
from app.static import data, load, save

_TAKEN = everything(_base)
globals().update(_TAKEN)

__all__ = [
    "backward",
    "clip",
    "compiler",
    "core",
    "data",
    "dygraph",
    "executor",
    "framework",
    "initializer",
    "io",
    "layers",
    "load",
    "optimizer",
    "param_attr",
    "regularizer",
    "save",
    "unique_name",
    *_TAKEN,
]

__getattr__ = missing(__name__)
