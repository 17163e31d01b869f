"""torch.nn"""

from app.compat.missing import missing
from app.compat.torch.nn import functional, init, parallel, parameter, utils
from app.compat.torch.nn._containers import ModuleDict, ModuleList, ParameterList, Sequential
from app.compat.torch.nn._images import AvgPool2d, Conv2d, MaxPool2d
from app.compat.torch.nn._layers import (
    MODULES,
    Dropout,
    Dropout2d,
    Embedding,
    Flatten,
    Identity,
    Linear,
    PReLU,
    Unflatten,
)
from app.compat.torch.nn._module import Module
from app.compat.torch.nn._normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from app.compat.torch.nn.parameter import Parameter

globals().update(MODULES)

__all__ = [
    *MODULES,
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv2d",
    "Dropout",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "Identity",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "PReLU",
    "Parameter",
    "ParameterList",
    "Sequential",
    "Unflatten",
    "functional",
    "init",
    "parallel",
    "parameter",
    "utils",
]

__getattr__ = missing(__name__)
