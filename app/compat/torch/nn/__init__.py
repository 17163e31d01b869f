"""torch.nn"""

from app.compat.missing import missing
from app.compat.torch.nn import functional, init, parallel, parameter, utils
from app.compat.torch.nn._containers import ModuleDict, ModuleList, ParameterList, Sequential
from app.compat.torch.nn._layers import (
    MODULES,
    BatchNorm1d,
    Dropout,
    Embedding,
    Flatten,
    Identity,
    LayerNorm,
    Linear,
    PReLU,
    Unflatten,
)
from app.compat.torch.nn._module import Module
from app.compat.torch.nn.parameter import Parameter

globals().update(MODULES)

__all__ = [
    *MODULES,
    "BatchNorm1d",
    "Dropout",
    "Embedding",
    "Flatten",
    "Identity",
    "LayerNorm",
    "Linear",
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
