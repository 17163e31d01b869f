"""Layers, their parameters, and the functions that they are made of."""

from app.nn import functional, initializer
from app.nn.layer import Layer
from app.nn.layers import (
    CrossEntropyLoss,
    Flatten,
    LeakyReLU,
    Linear,
    MSELoss,
    ReLU,
    Sequential,
    Sigmoid,
    Softmax,
    Tanh,
)
from app.nn.parameter import ParamAttr, create_parameter

__all__ = [
    "CrossEntropyLoss",
    "Flatten",
    "Layer",
    "LeakyReLU",
    "Linear",
    "MSELoss",
    "ParamAttr",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "create_parameter",
    "functional",
    "initializer",
]
