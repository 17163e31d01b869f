"""JAX, ReLU as a NumPy function through pure_callback"""

import jax
import numpy as np

from benchmarks.contenders import jax_step


def forward(x):
    return np.maximum(x, 0)


def backward(y, dy):
    return np.where(np.asarray(y) > 0, dy, np.float32(0))


@jax.custom_vjp
def relu(x):
    return jax.pure_callback(forward, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def relu_forward(x):
    y = relu(x)
    return y, y


def relu_backward(y, dy):
    return (jax.pure_callback(backward, jax.ShapeDtypeStruct(y.shape, y.dtype), y, dy),)


relu.defvjp(relu_forward, relu_backward)


def train(data, work):
    return jax_step.train(data, work, relu)
