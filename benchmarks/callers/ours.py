"""**This project**, PyLayer"""

import app
from app.autograd import PyLayer


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = app.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - app.square(y))


x = app.randn([1, 16], dtype="float32")
x.stop_gradient = False
gradient = app.ones([1, 16])


def call():
    Tanh.apply(x).backward(gradient)
