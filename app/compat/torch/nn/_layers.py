"""The layers of `torch.nn`: the framework's, with PyTorch's parameters, initial values and names in `state_dict`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from app import nn as below
from app.compat.torch.nn import _activations, _images, _losses, functional
from app.compat.torch.nn._module import Module
from app.nn.initializer import Initializer, Uniform
from app.nn.layers.of_function import REQUIRED, FunctionLayer


class Identity(Module, below.Identity):
    """The input, unchanged. Arguments of the constructor have no effect."""

    def __init__(self, *args: Any, **kwargs: Any):
        below.Identity.__init__(self)


class _Weighted(Module):
    """A layer whose weight and bias start with uniform numbers of at most 1 / sqrt(inputs of a sum)."""

    def inputs(self) -> int:
        """The number of inputs of a sum."""
        raise NotImplementedError

    def initializer(self) -> Initializer:
        """The initializer of the weight and the bias."""
        bound = 1 / math.sqrt(self.inputs()) if self.inputs() else 0.0
        return Uniform(-bound, bound)

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for parameter in self.parameters():
            self.initializer()(parameter)


class Linear(_Weighted, below.Linear):
    """`input @ weight.T + bias`."""

    outputs_first = True

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        self._place(device, dtype)
        below.Linear.__init__(self, in_features, out_features, None, None if bias else False)

    def inputs(self) -> int:
        return self.in_features

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Conv2d(_Weighted, below.Conv2D):
    """Sums of products of a trained weight with windows of images."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        self._place(device, dtype)
        around = (padding, padding) if isinstance(padding, int) else padding
        sizes = (in_channels, out_channels, kernel_size, stride, around, dilation, groups)
        below.Conv2D.__init__(self, *sizes, padding_mode, None, None if bias else False)
        self.padding_mode = padding_mode

    def inputs(self) -> int:
        return self.in_channels // self.groups * math.prod(self.kernel_size)

    def bias_initializer(self) -> Initializer:
        return self.initializer()

    def forward(self, input: Any) -> Any:
        settings = (self.stride, self.padding, self.dilation, self.groups)
        return _images.conv2d(input, self.weight, self.bias, *settings)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += f", padding={self.padding}" if self.padding != (0, 0) else ""
        text += f", dilation={self.dilation}" if self.dilation != (1, 1) else ""
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias is None else "")


class Flatten(Module):
    """Merges axes into one; by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Dropout(Module, below.Dropout):
    """In training, sets elements to 0 with probability `p`."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        below.Dropout.__init__(self, p)
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return functional.ROWS["dropout"](input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout2d(Dropout):
    """In training, sets channels of images to 0 with probability `p`."""

    def forward(self, input: Any) -> Any:
        return functional.ROWS["dropout2d"](input, self.p, self.training, self.inplace)


class PReLU(Module, below.PReLU):
    """The value where it is positive, otherwise the value times a trained weight."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
        self._place(device, dtype)
        below.PReLU.__init__(self, num_parameters, float(init))

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Embedding(Module, below.Embedding):
    """A table of `num_embeddings` trained vectors, looked up by index."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ):
        self._place(device, dtype)
        below.Embedding.__init__(self, num_embeddings, embedding_dim, padding_idx)

    def forward(self, input: Any) -> Any:
        return functional.embedding(input, self.weight, self.padding_idx)


class LayerNorm(Module, below.LayerNorm):
    """Normalises the last axes to mean 0 and variance 1, then scales and shifts them."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        self._place(device, dtype)
        scale, shift = elementwise_affine or False, (elementwise_affine and bias) or False
        below.LayerNorm.__init__(self, normalized_shape, eps, scale, shift)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.normalized_shape = tuple(self.normalized_shape)

    def forward(self, input: Any) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={bias}"


class BatchNorm1d(Module, below.BatchNorm1D):
    """Normalises each channel to mean 0 and variance 1, of the batch in training, else the running ones."""

    statistics = ("running_mean", "running_var")

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        self._place(device, dtype)
        below.BatchNorm1D.__init__(self, num_features, 0.9, eps, affine or False, affine or False)
        self.eps, self.affine, self.track_running_stats = eps, affine, track_running_stats
        self.momentum: Any = momentum
        self.running_mean: Any
        self.num_batches_tracked: Any
        for name in self.statistics:
            values = getattr(self, name).detach() if track_running_stats else None
            delattr(self, name)
            self.register_buffer(name, values)
        count = self.running_mean.result_class(np.zeros((), "int64")) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)

    def forward(self, input: Any) -> Any:
        self.check_axes(input)
        momentum = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # the mean of all batches so far
                momentum = 1 / float(self.num_batches_tracked)
        of_batch = self.training or not self.track_running_stats
        mean, variance = (getattr(self, name) for name in self.statistics)
        return functional.batch_norm(input, mean, variance, self.weight, self.bias, of_batch, momentum or 0.0, self.eps)

    def extra_repr(self) -> str:
        settings = {"eps": self.eps, "momentum": self.momentum, "affine": self.affine, "bias": self.bias is not None}
        said = ", ".join(f"{key}={value}" for key, value in settings.items())
        return f"{self.num_features}, {said}, track_running_stats={self.track_running_stats}"


class BatchNorm2d(BatchNorm1d, below.BatchNorm2D):
    """Normalises each channel of images to mean 0 and variance 1, as BatchNorm1d does."""


class _Function(Module, FunctionLayer):
    """A function with settings as a module."""

    takes_name = False
    __init__ = FunctionLayer.__init__

    def extra_repr(self) -> str:
        said = self.shown_settings()
        if list(said) == ["lambd"]:  # PyTorch omits its name
            return repr(said["lambd"])
        return ", ".join(f"{key}={value!r}" for key, value in said.items() if (key, value) != ("inplace", False))


class _Windows(_Function):
    """Pooling. Windows are side by side unless a stride is given."""

    kernel_size: Any
    stride: Any

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.stride is None:
            self.stride = self.kernel_size


class MaxPool2d(_Windows):
    """The maximum of each window of images."""

    function = _images.max_pool2d
    settings: ClassVar[Mapping[str, Any]] = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "dilation": 1,
        "return_indices": False,
        "ceil_mode": False,
    }
    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")


class AvgPool2d(_Windows):
    """The mean of each window of images."""

    function = _images.avg_pool2d
    settings: ClassVar[Mapping[str, Any]] = {
        "kernel_size": REQUIRED,
        "stride": None,
        "padding": 0,
        "ceil_mode": False,
        "count_include_pad": True,
        "divisor_override": None,
    }
    shown = ("kernel_size", "stride", "padding")


def _module(name: str, function: Callable[..., Any], inputs: int, shown: Sequence[str] | None = None) -> type[Module]:
    """The module of a function: what follows the inputs among the parameters are its settings."""
    parameters = list(inspect.signature(function).parameters.values())[inputs:]
    settings = {p.name: p.default for p in parameters if p.name not in ("_stacklevel", "dtype", "out")}
    members = {
        "function": function,
        "settings": settings,
        "shown": shown if inputs == 1 else (),
        "__doc__": function.__doc__,
    }
    return type(name, (_Function,), {**members, "__module__": __name__.rpartition(".")[0]})


_FUNCTIONS = {
    **_activations.ACTIVATIONS, **vars(_activations), **vars(_images), **_losses.LOSSES, **vars(_losses),
    **functional.ROWS, **vars(functional),
}  # fmt: skip

_OF_ONE_VALUE = """
    AdaptiveAvgPool2d=adaptive_avg_pool2d CELU=celu ELU=elu GELU=gelu GLU=glu Hardshrink=hardshrink
    Hardsigmoid=hardsigmoid Hardswish=hardswish Hardtanh=hardtanh LeakyReLU=leaky_relu LogSigmoid=logsigmoid
    LogSoftmax=log_softmax Mish=mish ReLU=relu ReLU6=relu6 SELU=selu SiLU=silu Sigmoid=sigmoid Softmax=softmax
    Softmin=softmin Softplus=softplus Softshrink=softshrink Softsign=softsign Tanh=tanh Tanhshrink=tanhshrink
    Threshold=threshold
"""
_OF_TWO_VALUES = """
    BCELoss=binary_cross_entropy BCEWithLogitsLoss=binary_cross_entropy_with_logits
    CrossEntropyLoss=cross_entropy HuberLoss=huber_loss KLDivLoss=kl_div L1Loss=l1_loss MSELoss=mse_loss
    NLLLoss=nll_loss SmoothL1Loss=smooth_l1_loss
"""
MODULES = {
    name: _module(name, _FUNCTIONS[function], inputs)
    for inputs, pairs in ((1, _OF_ONE_VALUE), (2, _OF_TWO_VALUES))
    for name, _, function in (pair.partition("=") for pair in pairs.split())
}
MODULES["AdaptiveMaxPool2d"] = _module("AdaptiveMaxPool2d", _images.adaptive_max_pool2d, 1, ("output_size",))
"""The modules that are a function with settings."""
