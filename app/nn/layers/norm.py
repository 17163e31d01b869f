"""Normalisation as layers."""

from __future__ import annotations

from typing import Any

from app.errors import ShapeError
from app.nn import functional as F  # noqa: N812 - the name that it has everywhere
from app.nn.initializer import Constant
from app.nn.layer import Layer
from app.nn.parameter import ParamAttr


class BatchNorm1D(Layer):
    """Each channel brought to mean 0 and spread 1, then scaled and shifted as is trained.

    In training by the mean and the variance of the batch, in use by those that `_mean` and `_variance` followed.
    """

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        use_global_stats: bool | None = None,
        name: str | None = None,
        *,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
    ):
        super().__init__(name)
        self.num_features, self.momentum, self.epsilon = num_features, momentum, epsilon
        self.data_format, self.use_global_stats = data_format, use_global_stats
        one = Constant(1.0)
        self.weight = self.create_parameter([num_features], weight_attr, default_initializer=one)
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        self._mean = self.create_parameter([num_features], ParamAttr(moving_mean_name, trainable=False), is_bias=True)
        self._variance = self.create_parameter(
            [num_features], ParamAttr(moving_variance_name, trainable=False), default_initializer=one
        )

    def forward(self, x: Any) -> Any:
        return F.batch_norm(
            x,
            self._mean,
            self._variance,
            self.weight,
            self.bias,
            self.training,
            self.momentum,
            self.epsilon,
            self.data_format,
            self.use_global_stats,
        )

    def extra_repr(self) -> str:
        settings = f"momentum={self.momentum}, epsilon={self.epsilon}, data_format={self.data_format}"
        return f"num_features={self.num_features}, {settings}"


class BatchNorm2D(BatchNorm1D):
    """BatchNorm1D of images of shape [images, channels, height, width]."""

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)

    def forward(self, x: Any) -> Any:
        if len(x.shape) != 4:
            raise ShapeError(f"BatchNorm2D: expected images of four axes, found shape {list(x.shape)}")
        return super().forward(x)

    def extra_repr(self) -> str:
        told = f"num_features={self.num_features}, momentum={self.momentum}, epsilon={self.epsilon}"
        return told if self.data_format == "NCHW" else f"{told}, data_format={self.data_format}"


class LayerNorm(Layer):
    """Each example brought to mean 0 and spread 1 over its last axes, then scaled and shifted as is trained."""

    def __init__(
        self,
        normalized_shape: Any,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ):
        super().__init__(name)
        sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.normalized_shape, self.epsilon = sizes, epsilon
        self.weight = self.create_parameter(sizes, weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(sizes, bias_attr, is_bias=True)

    def forward(self, x: Any) -> Any:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={self.normalized_shape}, epsilon={self.epsilon}"


class GroupNorm(Layer):
    """Each group of channels of an example brought to mean 0 and spread 1, then scaled and shifted as is trained."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ):
        super().__init__(name)
        self.num_groups, self.num_channels, self.epsilon = num_groups, num_channels, epsilon
        self.weight = self.create_parameter([num_channels], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)

    def forward(self, x: Any) -> Any:
        return F.group_norm(x, self.num_groups, self.epsilon, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}, epsilon={self.epsilon}"
