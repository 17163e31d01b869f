"""paddle.fluid: Paddle 1"""

from app.compat.missing import missing
from app.compat.paddle import base as _base
from app.compat.paddle.base import backward, compiler, core, dygraph, executor, framework, param_attr, unique_name
from app.compat.paddle.fluid import (
    average,
    clip,
    initializer,
    io,
    layers,
    learning_rate_scheduler,
    metrics,
    nets,
    optimizer,
    regularizer,
)
from app.compat.table import everything
from app.static import data, load, save
from app.static.nn import embedding

_TAKEN = everything(_base)
globals().update(_TAKEN)

__all__ = [
    "average",
    "backward",
    "clip",
    "compiler",
    "core",
    "data",
    "dygraph",
    "embedding",
    "executor",
    "framework",
    "initializer",
    "io",
    "layers",
    "learning_rate_scheduler",
    "load",
    "metrics",
    "nets",
    "optimizer",
    "param_attr",
    "regularizer",
    "save",
    "unique_name",
    *_TAKEN,
]

__getattr__ = missing(__name__)
