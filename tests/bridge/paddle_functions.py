"""Operators of Paddle: right ones, and wrong ones, each in one way."""

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


class Halved(PyLayer):
    @staticmethod
    def forward(ctx, x, factor=1.0):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return factor * x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return ctx.factor * dy * x


class KeptOnTheClass(PyLayer):
    @staticmethod
    def forward(ctx, x):
        KeptOnTheClass.x = x.detach()
        return x * x

    @staticmethod
    def backward(ctx, dy):
        return 2 * dy * KeptOnTheClass.x


def plain(x, y):
    return paddle.tanh(x) * y
