"""Activation functions as layers."""

from __future__ import annotations

from app.nn import functional as F  # noqa: N812 - the name that it has everywhere
from app.nn.layers.of_function import layer_of

ReLU = layer_of("ReLU", F.relu)
ReLU6 = layer_of("ReLU6", F.relu6)
LeakyReLU = layer_of("LeakyReLU", F.leaky_relu, negative_slope=0.01)
Sigmoid = layer_of("Sigmoid", F.sigmoid)
LogSigmoid = layer_of("LogSigmoid", F.log_sigmoid)
Tanh = layer_of("Tanh", F.tanh)
Softmax = layer_of("Softmax", F.softmax, axis=-1)
LogSoftmax = layer_of("LogSoftmax", F.log_softmax, axis=-1)
GELU = layer_of("GELU", F.gelu, approximate=False)
Silu = layer_of("Silu", F.silu)
Swish = layer_of("Swish", F.swish)
Mish = layer_of("Mish", F.mish)
Softplus = layer_of("Softplus", F.softplus, beta=1, threshold=20)
Softsign = layer_of("Softsign", F.softsign)
ELU = layer_of("ELU", F.elu, alpha=1.0)
CELU = layer_of("CELU", F.celu, alpha=1.0)
SELU = layer_of("SELU", F.selu, scale=1.0507009873554805, alpha=1.6732632423543772)
Hardtanh = layer_of("Hardtanh", F.hardtanh, min=-1.0, max=1.0)
Hardsigmoid = layer_of("Hardsigmoid", F.hardsigmoid)
Hardswish = layer_of("Hardswish", F.hardswish)
Hardshrink = layer_of("Hardshrink", F.hardshrink, threshold=0.5)
Softshrink = layer_of("Softshrink", F.softshrink, threshold=0.5)
Tanhshrink = layer_of("Tanhshrink", F.tanhshrink)
ThresholdedReLU = layer_of("ThresholdedReLU", F.thresholded_relu, threshold=1.0, value=0.0)
GLU = layer_of("GLU", F.glu, axis=-1)
