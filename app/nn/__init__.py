"""Layers, parameters and gradient clipping."""

from app.nn import functional, initializer, layers
from app.nn.clip import ClipGradByGlobalNorm
from app.nn.layer import Layer
from app.nn.layers import *  # noqa: F403
from app.nn.parameter import ParamAttr, create_parameter

__all__ = [
    "ClipGradByGlobalNorm",
    "Layer",
    "ParamAttr",
    "create_parameter",
    "functional",
    "initializer",
    *layers.__all__,
]


def __dir__() -> list[str]:
    return __all__
