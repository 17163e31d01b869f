"""A custom operator on tensors: PyLayer, what its two functions must keep to, and what happens where they do not."""

import paddle
from paddle.autograd import PyLayer


class Cube(PyLayer):
    """x³, with a gradient written by hand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)  # tensors that backward needs; once, and only in forward
        return x * x * x

    @staticmethod
    def backward(ctx, dy):  # one gradient for each result of forward
        (x,) = ctx.saved_tensor()
        return dy * 3 * x * x  # one gradient for each tensor that forward got


x = paddle.to_tensor([1.0, -2.0], stop_gradient=False)
Cube.apply(x).sum().backward()
print("cube", x.grad.tolist())


class Apply(PyLayer):
    """ctx holds arguments that are not Tensors; forward may take and return other objects too."""

    @staticmethod
    def forward(ctx, x, function, slope=2.0):
        ctx.slope = slope
        return function(x), "a word", slope

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.slope


x.clear_grad()
y, word, number = Apply.apply(x, paddle.tanh, slope=0.5)
y.sum().backward()
print(word, number, x.grad.tolist())


class Add(PyLayer):
    """Backward gives None for a tensor that wants no gradient."""

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, dy):
        return dy, None


a = paddle.ones([2])
a.stop_gradient = False
Add.apply(a, paddle.ones([2])).sum().backward()
print("add", a.grad.tolist())


class NoTensor(PyLayer):
    """Wrong: none of the results is a tensor."""

    @staticmethod
    def forward(ctx, x):
        return x.shape

    @staticmethod
    def backward(ctx, dy):
        return dy


try:
    NoTensor.apply(x)
except ValueError as error:
    print("refused:", error)


class TooFew(PyLayer):
    """Wrong: two tensors went in, and one gradient comes back."""

    @staticmethod
    def forward(ctx, a, b):
        return a * b

    @staticmethod
    def backward(ctx, dy):
        return dy


b = paddle.ones([2])
b.stop_gradient = False
try:
    TooFew.apply(a, b).sum().backward()
except ValueError as error:
    print("refused:", error)


class Both(PyLayer):
    """A result that gets no gradient arrives as zeros, or as None where that is asked for."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        print("second gradient:", second)
        return first * 2


x.clear_grad()
Both.apply(x)[0].sum().backward()
print("both", x.grad.tolist())

# Prints:
# cube [3.0, 12.0]
# a word 0.5 [0.5, 0.5]
# add [1.0, 1.0]
# refused: operator NoTensor (…): …
# refused: …operator TooFew (…): … 1 … 2 …
# second gradient: None
# both [2.0, 2.0]
