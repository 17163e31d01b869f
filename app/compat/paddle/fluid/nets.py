"""paddle.fluid.nets: what networks of Paddle 1 are composed of."""

from typing import Any

from app.compat.missing import missing
from app.compat.paddle.fluid import layers


def simple_img_conv_pool(
    input: Any,
    num_filters: int,
    filter_size: Any,
    pool_size: Any,
    pool_stride: Any,
    pool_padding: Any = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: Any = 1,
    conv_padding: Any = 0,
    conv_dilation: Any = 1,
    conv_groups: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    use_cudnn: bool = True,
) -> Any:
    """A convolution with an activation, then pooling."""
    found = layers.conv2d(
        input, num_filters, filter_size, conv_stride, conv_padding, conv_dilation, conv_groups, param_attr, bias_attr,
        act=act,
    )  # fmt: skip
    return layers.pool2d(found, pool_size, pool_type, pool_stride, pool_padding, global_pooling)


__all__ = ["simple_img_conv_pool"]

__getattr__ = missing(__name__)
