"""Layers that shift and scale what they get."""

from __future__ import annotations

from typing import Any

from app.compat.torch._creation import CREATORS
from app.compat.torch.nn import functional
from app.compat.torch.nn._module import Module
from app.compat.torch.nn.parameter import Parameter
from app.errors import ShapeError


class LayerNorm(Module):
    """The last axes to mean 0 and variance 1, then scaled and shifted as learned."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, **where: Any
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(CREATORS["ones"](self.normalized_shape, **where)) if elementwise_affine else None
        self.bias = (
            Parameter(CREATORS["zeros"](self.normalized_shape, **where)) if elementwise_affine and bias else None
        )

    def forward(self, input: Any) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={bias}"


class BatchNorm1d(Module):
    """Each feature to mean 0 and variance 1: of the batch in training, as remembered in use."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        **where: Any,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = Parameter(CREATORS["ones"](num_features, **where)) if affine else None
        self.bias = Parameter(CREATORS["zeros"](num_features, **where)) if affine else None
        self.running_mean: Any
        self.running_var: Any
        self.num_batches_tracked: Any
        remembered = track_running_stats
        self.register_buffer("running_mean", CREATORS["zeros"](num_features, **where) if remembered else None)
        self.register_buffer("running_var", CREATORS["ones"](num_features, **where) if remembered else None)
        self.register_buffer("num_batches_tracked", CREATORS["tensor"](0) if remembered else None)

    def forward(self, input: Any) -> Any:
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
        of_batch = self.training or not self.track_running_stats
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, of_batch, self.momentum, self.eps
        )

    def extra_repr(self) -> str:
        settings = {"eps": self.eps, "momentum": self.momentum, "affine": self.affine, "bias": self.bias is not None}
        said = ", ".join(f"{key}={value}" for key, value in settings.items())
        return f"{self.num_features}, {said}, track_running_stats={self.track_running_stats}"


class BatchNorm2d(BatchNorm1d):
    """Each channel of images to mean 0 and variance 1: of the batch in training, as remembered in use."""

    def forward(self, input: Any) -> Any:
        if input.ndim != 4:
            raise ShapeError(f"BatchNorm2d: expected 4D input (got {input.ndim}D input)")
        return super().forward(input)
