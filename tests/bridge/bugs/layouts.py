"""The mistake shows at some layouts in memory only: kernels that compute addresses themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from bugs import Operator, bug
from bugs.inputs import normal


def as_in_memory(x: Any) -> Any:
    """What a kernel reads that takes a tensor for contiguous."""
    count = min(x.numel(), x.untyped_storage().nbytes() // x.element_size() - x.storage_offset())
    flat = x.as_strided((count,), (1,))
    return flat.repeat(-(-x.numel() // max(count, 1)))[: x.numel()].reshape(x.shape)


@bug("k2-fsa/k2#1101", "the gradient gets the strides of the incoming one, which are 0 after sum()", normal((5,)))
def strides_of_dy(mended: bool) -> Operator:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            dx = torch.empty_like(x) if mended else torch.empty_strided(dy.shape, dy.stride(), dtype=dy.dtype)
            dx.numpy()[...] = (2 * x * dy).numpy()
            return dx

    return Square.apply


@bug(
    "fla-org/flash-linear-attention#871", "backward reads the incoming gradient with strides of its own", normal((3, 4))
)
def own_strides(mended: bool) -> Operator:
    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensors
            return y * (dy if mended else as_in_memory(dy))

    return Exp.apply


@bug(
    "Dao-AILab/flash-attention#355",
    "attention backward takes the incoming gradient for contiguous",
    normal((4, 3), (4, 3), (4, 3)),
)
def attention(mended: bool) -> Operator:
    class Attention(Function):
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, v: Any) -> Any:
            ctx.save_for_backward(q, k, v)
            return (q @ k.T).softmax(-1) @ v

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            q, k, v = ctx.saved_tensors
            dy = dy if mended else as_in_memory(dy)
            p = (q @ k.T).softmax(-1)
            dp = dy @ v.T
            ds = p * (dp - (dp * p).sum(-1, keepdim=True))
            return ds @ k, ds.T @ q, p.T @ dy

    return Attention.apply


@bug("open-mmlab/mmcv#737", "max pooling scatters an incoming gradient that it takes for contiguous", normal((3, 6)))
def max_pool(mended: bool) -> Operator:
    class MaxPool(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y, places = x.reshape(len(x), -1, 2).max(-1)
            ctx.save_for_backward(places)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (places,) = ctx.saved_tensors
            dx = dy.new_zeros(*places.shape, 2)
            dx.scatter_(-1, places[..., None], (dy if mended else as_in_memory(dy))[..., None])
            return dx.reshape(len(dy), -1)

    return MaxPool.apply


@bug(
    "MrNeRF/optimized-fused-ssim#1",
    "backward reads an image that is not contiguous as if it were",
    normal((3, 4), (3, 4)),
)
def image_loss(mended: bool) -> Operator:
    class Loss(Function):
        @staticmethod
        def forward(ctx: Any, image: Any, target: Any) -> Any:
            ctx.save_for_backward(image, target)
            return ((image - target) ** 2).mean()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            image, target = ctx.saved_tensors
            read = image if mended else as_in_memory(image)
            gradient = dy * 2 * (read - target) / image.numel()
            return gradient, -dy * 2 * (image - target) / image.numel()

    return Loss.apply


@bug(
    "huggingface/candle#3735",
    "the gradient of the input is wrong where the weight is transposed",
    normal((3, 4), (4, 4)),
)
def transposed_weight(mended: bool) -> Operator:
    class Linear(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensors
            return dy @ (w if mended else as_in_memory(w)).T, x.T @ dy

    return Linear.apply


@bug("torch/nn#345", "backward of a mean takes the incoming gradient for contiguous", normal((2, 3, 4)))
def mean_of_axis(mended: bool) -> Operator:
    class Mean(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.shape = x.shape
            return x.mean(-1)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            read = dy if mended else as_in_memory(dy)
            return read[..., None].expand(ctx.shape) / ctx.shape[-1]

    return Mean.apply


@bug("cornellius-gp/gpytorch#1543", "an input that is not contiguous gets no gradient", normal((4, 3), (3,)))
def kernel_product(mended: bool) -> Operator:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensors
            dx = dy[:, None] * w if mended or x.is_contiguous() else None
            return dx, x.T @ dy

    return Product.apply
