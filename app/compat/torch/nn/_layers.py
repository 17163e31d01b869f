"""The layers of a dense network: those that hold something, and those that are functions with settings."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from app.compat.torch import _creation as create
from app.compat.torch.nn import functional, init
from app.compat.torch.nn._module import Module
from app.compat.torch.nn.parameter import Parameter


def _parameter(*size: int, dtype: Any = None) -> Parameter:
    return Parameter(create.CREATORS["empty"](*size, dtype=dtype))


class Identity(Module):
    """The input as it is."""

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """`input @ weight.T + bias`."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _parameter(out_features, in_features, dtype=dtype)
        self.bias = _parameter(out_features, dtype=dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New random numbers, within one over the root of the number of inputs."""
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input: Any) -> Any:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Flatten(Module):
    """Axes made one; at first all but the batch's."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis made several."""

    def __init__(self, dim: int, unflattened_size: Any):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Dropout(Module):
    """In training some elements set to zero at random, the others made larger to keep the mean."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        self.p, self.inplace = p, inplace

    def forward(self, input: Any) -> Any:
        return functional.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout2d(Dropout):
    """In training some channels of images set to zero at random, the others made larger to keep the mean."""

    def forward(self, input: Any) -> Any:
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class PReLU(Module):
    """Negative values made smaller by a factor that is learned."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(create.CREATORS["full"]((num_parameters,), float(init), dtype=dtype))

    def forward(self, input: Any) -> Any:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Embedding(Module):
    """A table with a row for each of some things."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, dtype: Any = None):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.weight = _parameter(num_embeddings, embedding_dim, dtype=dtype)
        init.normal_(self.weight)

    def forward(self, input: Any) -> Any:
        return functional.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


# Functions with settings


def _as_module(name: str, function: Callable[..., Any], settings: dict[str, Any], shown: bool) -> type[Module]:
    signature = inspect.Signature(
        [inspect.Parameter(k, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=v) for k, v in settings.items()]
    )

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - what Python calls
        Module.__init__(self)
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for key, value in given.arguments.items():
            setattr(self, key, value)

    def forward(self: Any, *inputs: Any) -> Any:
        return function(*inputs, **{key: getattr(self, key) for key in settings})

    def extra_repr(self: Any) -> str:
        said = {key: getattr(self, key) for key in settings} if shown else {}
        if list(said) == ["lambd"]:  # its name is not said
            return repr(said["lambd"])
        return ", ".join(f"{key}={value!r}" for key, value in said.items() if (key, value) != ("inplace", False))

    members = {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__doc__": function.__doc__}
    return type(name, (Module,), {**members, "__module__": __name__.rpartition(".")[0]})


_INPLACE = {"inplace": False}
_REDUCTION = {"size_average": None, "reduce": None, "reduction": "mean"}

_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "CELU": ("celu", {"alpha": 1.0, **_INPLACE}),
    "ELU": ("elu", {"alpha": 1.0, **_INPLACE}),
    "GELU": ("gelu", {"approximate": "none"}),
    "GLU": ("glu", {"dim": -1}),
    "Hardshrink": ("hardshrink", {"lambd": 0.5}),
    "Hardsigmoid": ("hardsigmoid", _INPLACE),
    "Hardswish": ("hardswish", _INPLACE),
    "Hardtanh": ("hardtanh", {"min_val": -1.0, "max_val": 1.0, **_INPLACE}),
    "LeakyReLU": ("leaky_relu", {"negative_slope": 0.01, **_INPLACE}),
    "LogSigmoid": ("logsigmoid", {}),
    "LogSoftmax": ("log_softmax", {"dim": None}),
    "Mish": ("mish", _INPLACE),
    "ReLU": ("relu", _INPLACE),
    "ReLU6": ("relu6", _INPLACE),
    "SELU": ("selu", _INPLACE),
    "SiLU": ("silu", _INPLACE),
    "Sigmoid": ("sigmoid", {}),
    "Softmax": ("softmax", {"dim": None}),
    "Softmin": ("softmin", {"dim": None}),
    "Softplus": ("softplus", {"beta": 1.0, "threshold": 20.0}),
    "Softshrink": ("softshrink", {"lambd": 0.5}),
    "Softsign": ("softsign", {}),
    "Tanh": ("tanh", {}),
    "Tanhshrink": ("tanhshrink", {}),
    "Threshold": ("threshold", {"threshold": inspect.Parameter.empty, "value": inspect.Parameter.empty, **_INPLACE}),
}

_LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "BCELoss": ("binary_cross_entropy", {"weight": None, **_REDUCTION}),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", {"weight": None, **_REDUCTION, "pos_weight": None}),
    "CosineSimilarity": ("cosine_similarity", {"dim": 1, "eps": 1e-8}),
    "CrossEntropyLoss": (
        "cross_entropy",
        {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean"}
        | {"label_smoothing": 0.0},
    ),
    "HuberLoss": ("huber_loss", {"reduction": "mean", "delta": 1.0}),
    "KLDivLoss": ("kl_div", {**_REDUCTION, "log_target": False}),
    "L1Loss": ("l1_loss", _REDUCTION),
    "MSELoss": ("mse_loss", _REDUCTION),
    "NLLLoss": (
        "nll_loss",
        {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean"},
    ),
    "PairwiseDistance": ("pairwise_distance", {"p": 2.0, "eps": 1e-6, "keepdim": False}),
    "SmoothL1Loss": ("smooth_l1_loss", {**_REDUCTION, "beta": 1.0}),
}

_IMAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "AdaptiveAvgPool2d": ("adaptive_avg_pool2d", {"output_size": inspect.Parameter.empty}),
    "AdaptiveMaxPool2d": ("adaptive_max_pool2d", {"output_size": inspect.Parameter.empty}),
}

MODULES = {
    name: _as_module(name, getattr(functional, function), settings, shown)
    for table, shown in ((_ACTIVATIONS, True), (_IMAGES, True), (_LOSSES, False))
    for name, (function, settings) in table.items()
}
"""Every module that is a function with settings."""
