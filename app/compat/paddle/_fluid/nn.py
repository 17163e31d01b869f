"""paddle.fluid.dygraph.nn: layers with Paddle 1's parameters, an activation among them; and pooling as a function."""

from collections.abc import Mapping
from typing import Any, ClassVar

from app import nn
from app.errors import OperatorError
from app.nn import Layer, functional
from app.nn.functional.convolution import check_format
from app.nn.layers.of_function import FunctionLayer
from app.ops.dtype import canonical
from app.static.nn import activated


class _Activated(Layer):
    """A layer with parameters of a chosen element type, which applies an activation to its result."""

    def __init__(self, act: str | None, dtype: str, *settings: Any, **others: Any):
        self._dtype = canonical(dtype)  # the constructor of the layer makes its parameters of this type
        super().__init__(*settings, **others)
        self._act = act

    def forward(self, x: Any) -> Any:
        return activated(super().forward(x), self._act)


class Linear(_Activated, nn.Linear):
    """A fully connected layer."""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        param_attr: Any = None,
        bias_attr: Any = None,
        act: str | None = None,
        dtype: str = "float32",
    ):
        super().__init__(act, dtype, input_dim, output_dim, param_attr, bias_attr)


class Conv2D(_Activated, nn.Conv2D):
    """A convolution of images; `use_cudnn` has no effect."""

    def __init__(
        self,
        num_channels: int,
        num_filters: int,
        filter_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int | None = None,
        param_attr: Any = None,
        bias_attr: Any = None,
        use_cudnn: bool = True,
        act: str | None = None,
        dtype: str = "float32",
    ):
        attributes = {"weight_attr": param_attr, "bias_attr": bias_attr}
        sizes = (num_channels, num_filters, filter_size, stride, padding, dilation, groups or 1)
        super().__init__(act, dtype, *sizes, **attributes)


class BatchNorm(_Activated, nn.BatchNorm1D):
    """Batch normalisation of values of any number of axes; arguments that are not settings of it have no effect."""

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: str = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ):
        settings = {"moving_mean_name": moving_mean_name, "moving_variance_name": moving_variance_name}
        numbers = (num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats or None)
        super().__init__(act, dtype, *numbers, **settings)
        if is_test:
            self.eval()


def _check_pool_type(where: str, pool_type: str) -> None:
    """Raise an error for an unknown kind of pooling."""
    if pool_type not in ("max", "avg"):
        raise OperatorError(f"{where}: pool_type must be 'max' or 'avg', found {pool_type!r}")


def pool2d(
    input: Any,
    pool_size: Any = -1,
    pool_type: str = "max",
    pool_stride: Any = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Any:
    """The maximum or the mean of each window of images; `use_cudnn` has no effect."""
    _check_pool_type("pool2d", pool_type)
    if global_pooling:
        check_format("pool2d", data_format)
        whole = functional.adaptive_max_pool2d if pool_type == "max" else functional.adaptive_avg_pool2d
        return whole(input, 1)
    windows = (input, pool_size, pool_stride, pool_padding)
    if pool_type == "max":
        return functional.max_pool2d(*windows, ceil_mode=ceil_mode, data_format=data_format)
    return functional.avg_pool2d(*windows, ceil_mode=ceil_mode, exclusive=exclusive, data_format=data_format)


class Pool2D(FunctionLayer):
    """The maximum or the mean of each window of images; `use_cudnn` has no effect."""

    function = pool2d
    settings: ClassVar[Mapping[str, Any]] = {
        "pool_size": -1,
        "pool_type": "max",
        "pool_stride": 1,
        "pool_padding": 0,
        "global_pooling": False,
        "use_cudnn": True,
        "ceil_mode": False,
        "exclusive": True,
        "data_format": "NCHW",
    }
    shown = ()
    takes_name = False
    pool_type: str

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        _check_pool_type("Pool2D", self.pool_type)
