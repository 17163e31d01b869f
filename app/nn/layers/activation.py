"""Activation functions as layers."""

from __future__ import annotations

from typing import Any

from app.nn import functional as F  # noqa: N812 - the name that it has everywhere
from app.nn.initializer import Constant
from app.nn.layer import Layer
from app.nn.layers.of_function import FunctionLayer


def _layer(name: str, function: Any, **settings: Any) -> Any:
    """The class of layers that are an activation function."""
    described = {"__doc__": function.__doc__, "__module__": __name__, "function": function, "settings": settings}
    return type(name, (FunctionLayer,), described)


ReLU = _layer("ReLU", F.relu)
ReLU6 = _layer("ReLU6", F.relu6)
LeakyReLU = _layer("LeakyReLU", F.leaky_relu, negative_slope=0.01)
Sigmoid = _layer("Sigmoid", F.sigmoid)
LogSigmoid = _layer("LogSigmoid", F.log_sigmoid)
Tanh = _layer("Tanh", F.tanh)
Softmax = _layer("Softmax", F.softmax, axis=-1)
LogSoftmax = _layer("LogSoftmax", F.log_softmax, axis=-1)
GELU = _layer("GELU", F.gelu, approximate=False)
Silu = _layer("Silu", F.silu)
Swish = _layer("Swish", F.swish)
Mish = _layer("Mish", F.mish)
Softplus = _layer("Softplus", F.softplus, beta=1, threshold=20)
Softsign = _layer("Softsign", F.softsign)
ELU = _layer("ELU", F.elu, alpha=1.0)
CELU = _layer("CELU", F.celu, alpha=1.0)
SELU = _layer("SELU", F.selu, scale=1.0507009873554805, alpha=1.6732632423543772)
Hardtanh = _layer("Hardtanh", F.hardtanh, min=-1.0, max=1.0)
Hardsigmoid = _layer("Hardsigmoid", F.hardsigmoid)
Hardswish = _layer("Hardswish", F.hardswish)
Hardshrink = _layer("Hardshrink", F.hardshrink, threshold=0.5)
Softshrink = _layer("Softshrink", F.softshrink, threshold=0.5)
Tanhshrink = _layer("Tanhshrink", F.tanhshrink)
ThresholdedReLU = _layer("ThresholdedReLU", F.thresholded_relu, threshold=1.0, value=0.0)
GLU = _layer("GLU", F.glu, axis=-1)


class PReLU(Layer):
    """The value where it is positive, else the value times a trained weight."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ):
        super().__init__(name)
        self.num_parameters, self.init, self.data_format = num_parameters, init, data_format
        self.weight = self.create_parameter([num_parameters], weight_attr, default_initializer=Constant(init))

    def forward(self, x: Any) -> Any:
        return F.prelu(x, self.weight, self.data_format)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}, data_format={self.data_format}, init={self.init}"
