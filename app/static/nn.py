"""Layers of Programs as functions that create their parameters and append their operators.

Parameters have the type of the input; for whole numbers, the default type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from app.custom.lookup import make_operator
from app.errors import ShapeError
from app.graph import names
from app.graph.defaults import static_mode
from app.listed import as_list
from app.nn import BatchNorm1D, Conv2D, Layer, create_parameter, functional
from app.nn.parameter import new_name
from app.ops.dtype import get_default_dtype, is_float
from app.ops.shaping import reshape
from app.ops.spec import UNKNOWN
from app.static.control_flow import cond, while_loop

__all__ = ["batch_norm", "cond", "conv2d", "fc", "while_loop"]


def __dir__() -> list[str]:
    return __all__


def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """A fully connected layer: `activation(x @ w + b)`.

    A list of inputs is multiplied by one weight each and summed; `weight_attr` may then be a list, too. The axes of an
    input after the first `num_flatten_dims` are flattened.
    """
    scope = name or names.generate("fc")
    with static_mode():
        inputs = as_list(x)
        attrs = weight_attr if isinstance(weight_attr, (list, tuple)) else [weight_attr] * len(inputs)
        if len(attrs) != len(inputs):
            raise ShapeError(f"fc: {len(inputs)} inputs, but {len(attrs)} attributes of weights")
        parts = [_product(one, size, num_flatten_dims, attr, scope) for one, attr in zip(inputs, attrs, strict=True)]
        out = parts[0]
        for part in parts[1:]:
            out = out + part
        if bias_attr is not False:
            bias = new_name(f"{scope}.b")
            out = out + create_parameter([size], _type_for(inputs[0]), attr=bias_attr, is_bias=True, name=bias)
        return activated(out, activation)


def conv2d(
    input: Any,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """A convolution that creates its weight and bias, followed by an activation."""
    with static_mode():
        if len(input.shape) != 4 or input.shape[1] == UNKNOWN:
            expected = "[images, channels, height, width] with a known number of channels"
            raise ShapeError(f"conv2d: expected images of shape {expected}, found shape {list(input.shape)}")
        settings = {"weight_attr": param_attr, "bias_attr": bias_attr}
        layer = _of_type(Conv2D, input)(
            input.shape[1], num_filters, filter_size, stride, padding, dilation, groups or 1, **settings,
            name=name or "conv2d",
        )  # fmt: skip
        return activated(layer(input), act)


def batch_norm(
    input: Any,
    act: str | Callable[..., Any] | None = None,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    use_global_stats: bool = False,
) -> Any:
    """Batch normalisation that creates its parameters, followed by an activation.

    With `is_test` or `use_global_stats` the running mean and variance are used.
    """
    with static_mode():
        if len(input.shape) < 2:
            raise ShapeError(f"batch_norm: expected at least two axes, found shape {list(input.shape)}")
        channels = input.shape[-1 if data_layout == "NHWC" else 1]
        layer = _of_type(BatchNorm1D, input)(
            channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats or None,
            name=name or "batch_norm", moving_mean_name=moving_mean_name, moving_variance_name=moving_variance_name,
        )  # fmt: skip
        layer.training = not is_test
        return activated(layer(input), act)


def _type_for(x: Any) -> str:
    return str(x.dtype) if is_float(x.dtype) else get_default_dtype()


def _of_type(layer: type[Layer], x: Any) -> Any:
    """A class of layers whose parameters have the type for an input."""
    return type(layer.__name__, (layer,), {"_dtype": _type_for(x)})


def activated(out: Any, activation: str | Callable[..., Any] | None) -> Any:
    """Apply an activation, given by name or as a function; None returns the value itself."""
    if activation is None:
        return out
    return functional.softmax(out) if activation == "softmax" else make_operator(activation)(out)


def _product(x: Any, size: int, keep: int, weight_attr: Any, scope: str) -> Any:
    if not 0 < keep < max(len(x.shape), 2):
        raise ShapeError(f"fc: num_flatten_dims={keep} does not fit {x.name} of shape {list(x.shape)}")
    if UNKNOWN in x.shape[keep:]:
        raise ShapeError(f"fc: the size of {x.name} after axis {keep} must be known, found shape {list(x.shape)}")
    width = math.prod(x.shape[keep:])
    if len(x.shape) != keep + 1:
        x = reshape(x, [*[0] * keep, width])
    weight = create_parameter([width, size], _type_for(x), attr=weight_attr, name=new_name(f"{scope}.w"))
    return functional.linear(x, weight)
