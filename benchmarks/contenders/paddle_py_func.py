"""Paddle static graph, ReLU as a NumPy function through py_func

py_func exists in Paddle's older graph representation alone, which is chosen before Paddle is imported.
"""

import os

os.environ["FLAGS_enable_pir_api"] = "0"  # noqa: SIM112

import numpy as np
import paddle

from benchmarks.contenders import paddle_static


def forward(x):
    return np.maximum(np.array(x), 0)


def backward(y, dy):
    return np.array(dy) * (np.array(y) > 0)


def relu(x):
    y = paddle.static.default_main_program().current_block().create_var(name="relu", dtype=x.dtype, shape=x.shape)
    return paddle.static.py_func(forward, x, y, backward_func=backward, skip_vars_in_backward_input=x)


def train(data, work):
    return paddle_static.train(data, work, relu)
