"""Operators of PyTorch: right ones, and wrong ones, each in one way."""

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class MyReLU(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * (x > 0)


class Masked(Function):
    """With a mask of floats, which has no gradient, and a weight, which has one that may be wrong."""

    @staticmethod
    def forward(ctx, x, mask, weight, factor):
        ctx.save_for_backward(x, mask, weight)
        ctx.factor = factor
        return x * mask * weight

    @staticmethod
    def backward(ctx, dy):
        x, mask, weight = ctx.saved_tensors
        return ctx.factor * dy * mask * weight, None, dy * x * mask, None


class Swish(Function):
    """In the second style, with a setting, with forward mode and vmap."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, beta=1.0):
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])
        ctx.beta = inputs[1]

    @staticmethod
    def slope(ctx):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(ctx.beta * x)
        return s * (1 + ctx.beta * x * (1 - s))

    @staticmethod
    def backward(ctx, dy):
        return dy * Swish.slope(ctx), None

    @staticmethod
    def jvp(ctx, dx, _):
        return dx * Swish.slope(ctx)


class Halved(Function):
    """The derivative of x² without its 2."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * x


class KeptInBuffer(Function):
    """Writes its result into the same memory in each call."""

    buffers = {}  # noqa: RUF012

    @staticmethod
    def forward(ctx, x):
        buffer = KeptInBuffer.buffers.setdefault((x.shape, x.dtype), torch.empty_like(x))
        return buffer.copy_(2 * x).detach()

    @staticmethod
    def backward(ctx, dy):
        return 2 * dy


class ReadsMemory(Function):
    """Reads the gradient that arrives in the order of its memory, whatever its strides."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, dy):
        storage = torch.as_strided(dy, (dy.untyped_storage().size() // dy.element_size(),), (1,), 0)
        return 2 * storage[: dy.numel()].reshape(dy.shape) if storage.numel() >= dy.numel() else 2 * dy


class SumOnly(Function):
    """Does not take a gradient that is expanded."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, dy):
        if 0 in dy.stride():
            raise RuntimeError("dy must be contiguous")
        return 2 * dy


class Cycle(Function):
    """Keeps its result on ctx, which the result keeps alive."""

    @staticmethod
    def forward(ctx, x):
        ctx.y = torch.exp(x)
        return ctx.y

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.y


class NumpyExp(Function):
    """Right, without a second derivative, which it says."""

    @staticmethod
    def forward(ctx, x):
        y = torch.from_numpy(np.exp(x.detach().numpy()))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return dy * y


class OneOutput(Function):
    """Fails if only the first of two results is used."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, ds, dc):
        (x,) = ctx.saved_tensors
        return ds * x.cos() - dc * x.sin()


class ForgetsNeeds(Function):
    """Its gradient for the bias is wrong if the weight needs none."""

    @staticmethod
    def forward(ctx, x, b):
        ctx.save_for_backward(x, b)
        return x * b

    @staticmethod
    def backward(ctx, dy):
        x, b = ctx.saved_tensors
        return dy * b, dy * x if ctx.needs_input_grad[0] else dy


class WrongJvp(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy

    @staticmethod
    def jvp(ctx, dx):
        (x,) = ctx.saved_tensors
        return x * dx


class AbsoluteTangent(WrongJvp):
    @staticmethod
    def jvp(ctx, dx):
        (x,) = ctx.saved_tensors
        return 2 * x * dx.abs()


class WrongVmap(Function):
    @staticmethod
    def forward(x):
        return x - x.mean(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, dy):
        return dy - dy.mean(0)

    @staticmethod
    def vmap(info, in_dims, x):
        return WrongVmap.apply(x), in_dims[0]  # the mean over the new axis


class Round(Function):
    """A straight-through estimator."""

    surrogate = True

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, dy):
        return dy


@torch.library.custom_op("opsmith_tests::leaky", mutates_args=())
def leaky(x: torch.Tensor, slope: float) -> torch.Tensor:
    return torch.where(x > 0, x, slope * x)


@leaky.register_fake
def _(x, slope):
    return torch.empty_like(x)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.slope = inputs[1]


def _leaky_backward(ctx, dy):
    (x,) = ctx.saved_tensors
    return torch.where(x > 0, dy, ctx.slope * dy), None


leaky.register_autograd(_leaky_backward, setup_context=_keep)


@torch.library.custom_op("opsmith_tests::turned", mutates_args=())
def turned(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous()


@turned.register_fake
def _(x):
    return torch.empty_like(x)


def plain(x, y):
    return torch.tanh(x) * y


class Module(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)


def take(x, index, axis):
    return torch.index_select(x, axis, index)


# What computes in float32 only


def _of_float32(*tensors: torch.Tensor) -> None:
    if any(t.dtype != torch.float32 for t in tensors):
        raise TypeError("this kernel takes float32 only")


class Kernel(torch.autograd.Function):
    """Softmax of float32 rows."""

    @staticmethod
    def forward(ctx, x):
        _of_float32(x)
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return y * (dy - (dy * y).sum(-1, keepdim=True))


class KernelWithoutSum(Kernel):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return y * dy


class KernelOfProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        _of_float32(x, w)
        ctx.save_for_backward(x, w)
        return torch.relu(x @ w)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dy = dy * (x @ w > 0)
        return dy @ w.mT, x.mT @ dy


class KernelOfHalfProduct(KernelOfProduct):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dy = dy * (x @ w > 0)
        return dy @ w.mT, x.mT @ dy / 2


class CastsToFloat32(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x.float())

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * torch.exp(x)


class CastsAndForgets(CastsToFloat32):
    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * torch.exp(x) * 1.02


class FirstColumn(Function):
    """Of matrices: of three axes, `x[:, 0]` takes a matrix, which broadcasts."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.logsumexp(-1) - x[:, 0]

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        first = torch.zeros_like(x)
        first[:, 0] = 1
        return (x.softmax(-1) - first) * dy.unsqueeze(-1)
