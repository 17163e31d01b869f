"""Paddle, PyLayer"""

import paddle
from paddle.autograd import PyLayer


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - paddle.square(y))


x = paddle.randn([1, 16], dtype="float32")
x.stop_gradient = False
gradient = paddle.ones([1, 16])


def call():
    Tanh.apply(x).backward(gradient)
