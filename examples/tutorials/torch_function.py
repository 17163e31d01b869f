"""PyTorch: operators of one's own by autograd.Function, with one ctx or with setup_context, and their proof."""

import numpy as np
import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable


class Linear(Function):
    """x @ w.T + b, where there may be no b."""

    @staticmethod
    def forward(x, w, b):
        y = x @ w.t()
        return y if b is None else y + b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        x, w, b = ctx.saved_tensors
        dx = dw = db = None
        if ctx.needs_input_grad[0]:
            dx = dy @ w
        if ctx.needs_input_grad[1]:
            dw = dy.t() @ x
        if b is not None and ctx.needs_input_grad[2]:
            db = dy.sum(0)
        return dx, dw, db


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.double, requires_grad=True)


torch.manual_seed(0)
print(gradcheck(Linear.apply, (doubles(4, 3), doubles(2, 3), doubles(2))))
print(gradcheck(Linear.apply, (doubles(4, 3), doubles(2, 3), None)))


class Scale(Function):
    """A number that is no tensor gets no gradient."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.factor, None


x = torch.tensor([1.0, 2.0], requires_grad=True)
y = Scale.apply(x, 5)
y.sum().backward()
print(y, x.grad)


class Cube(Function):
    """Saves what forward computes for the gradient, and can be differentiated twice."""

    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, dy, dslope):
        x, slope = ctx.saved_tensors
        return dy * slope + dslope * 6 * x


def cube(x):
    return Cube.apply(x)[0]


print(gradcheck(cube, doubles(3)), gradgradcheck(cube, doubles(3)))
x = torch.tensor([1.0, 2.0], requires_grad=True)
(slope,) = torch.autograd.grad(cube(x).sum(), x, create_graph=True)
(bend,) = torch.autograd.grad(slope.sum(), x)
print(slope.detach(), bend)


class Spectrum(Function):
    """NumPy's Fourier transform: what NumPy computes, no tape can see, so backward is done once only."""

    @staticmethod
    def forward(ctx, x):
        values = np.fft.fft(x.detach().numpy())
        ctx.values = values
        return torch.from_numpy(np.abs(values) ** 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        return torch.from_numpy(2 * np.fft.fft(dy.numpy() * ctx.values.conj()).real)


signal = torch.tensor([1.0, 0.5, -1.0, 2.0], dtype=torch.double, requires_grad=True)
print(Spectrum.apply(signal), gradcheck(Spectrum.apply, signal))


class Increment(Function):
    """Changes its input in place, and says so."""

    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, dy):
        return dy


leaf = torch.zeros(2, requires_grad=True)
work = leaf * 2
same = Increment.apply(work)
print(same is work, same)
same.sum().backward()
print(leaf.grad)


class Order(Function):
    """Sorted values, and the places that have no gradient."""

    @staticmethod
    def forward(ctx, x):
        ordered, places = x.sort()
        ctx.mark_non_differentiable(places)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(places)
        return ordered, places

    @staticmethod
    def backward(ctx, dordered, dplaces):
        (places,) = ctx.saved_tensors
        return torch.zeros_like(dordered).scatter_(0, places, dordered), None


values = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
ordered, places = Order.apply(values)
(ordered * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
print(ordered, places.requires_grad, values.grad)


class Wrong(Scale):
    @staticmethod
    def backward(ctx, dy):
        return dy * 2, None


try:
    gradcheck(lambda x: Wrong.apply(x, 5), doubles(2))
except RuntimeError as error:
    print("caught:", type(error).__mro__[-3].__name__)

# Prints:
# True
# True
# tensor([ 5., 10.], grad_fn=<ScaleBackward>) tensor([5., 5.])
# True True
# tensor([ 3., 12.]) tensor([ 6., 12.])
# tensor([6.2500, 6.2500, 6.2500, 6.2500], dtype=torch.float64,
#        grad_fn=<SpectrumBackward>) True
# True tensor([1., 1.], grad_fn=<IncrementBackward>)
# tensor([2., 2.])
# tensor([1., 2., 3.], grad_fn=<OrderBackward>) False tensor([100.,   1.,  10.])
# caught: Exception
