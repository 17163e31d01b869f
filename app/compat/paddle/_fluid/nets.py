"""paddle.fluid.nets: composite layers of Paddle 1."""

from typing import Any

from app import static
from app.compat.paddle._fluid.nn import pool2d


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
    found = static.nn.conv2d(
        input, num_filters, filter_size, conv_stride, conv_padding, conv_dilation, conv_groups, param_attr, bias_attr,
        act=act,
    )  # fmt: skip
    return pool2d(found, pool_size, pool_type, pool_stride, pool_padding, global_pooling)
