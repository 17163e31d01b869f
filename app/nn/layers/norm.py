"""Normalisation as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from app.errors import ShapeError
from app.nn import functional as F  # noqa: N812 - the name that it has everywhere
from app.nn.initializer import Constant
from app.nn.layer import Layer
from app.nn.parameter import ParamAttr


class BatchNorm1D(Layer):
    """Normalises each channel to mean 0 and variance 1, then scales and shifts it by trained parameters.

    In training, mean and variance are those of the batch; otherwise the running ones, `_mean` and `_variance`.
    """

    statistics: ClassVar[tuple[str, str]] = ("_mean", "_variance")
    """The names of the running mean and the running variance."""
    of_images = False
    """Whether inputs must have the four axes of images."""

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
        mean, variance = self.statistics
        of_mean, of_variance = (ParamAttr(n, trainable=False) for n in (moving_mean_name, moving_variance_name))
        setattr(self, mean, self.create_parameter([num_features], of_mean, is_bias=True))
        setattr(self, variance, self.create_parameter([num_features], of_variance, default_initializer=one))

    def check_axes(self, x: Any) -> None:
        """Raise an error if a layer of images gets an input of other axes."""
        if self.of_images and len(x.shape) != 4:
            raise ShapeError(f"{type(self).__name__}: expected images of four axes, found shape {list(x.shape)}")

    def forward(self, x: Any) -> Any:
        self.check_axes(x)
        mean, variance = (getattr(self, name) for name in self.statistics)
        return F.batch_norm(
            x,
            mean,
            variance,
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

    of_images = True

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

    def extra_repr(self) -> str:
        text = f"num_features={self.num_features}, momentum={self.momentum}, epsilon={self.epsilon}"
        return text if self.data_format == "NCHW" else f"{text}, data_format={self.data_format}"
