"""The mistake shows at some shapes only."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from bugs import Operator, bug
from bugs.inputs import normal


@bug("deep-spin/entmax#13", "squeeze() without an axis mixes rows where another axis has one element", normal((3, 4)))
def sparse_loss(mended: bool) -> Operator:
    class Loss(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.softmax(-1)
            ctx.save_for_backward(y)
            return (y * y).sum(-1, keepdim=True).squeeze(-1)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensors
            scale = dy.unsqueeze(-1) if mended else dy.squeeze().unsqueeze(-1)
            return scale * 2 * y * (y - (y * y).sum(-1, keepdim=True))

    return Loss.apply


@bug(
    "BobMcDear/attorch#18",
    "the weight's gradient loses the last rows where the block does not divide them",
    normal((6, 5), (5,)),
)
def blocks_of_rows(mended: bool) -> Operator:
    class Scale(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensors
            block, dw = 4, torch.zeros_like(w)
            blocks = -(-len(x) // block) if mended else max(1, len(x) // block)
            for i in range(blocks):
                part = slice(i * block, (i + 1) * block)
                dw = dw + (dy[part] * x[part]).sum(0)
            return dy * w, dw

    return Scale.apply


@bug(
    "flagos-ai/FlagGems#59",
    "layer norm backward adds up blocks of rows where it should add up each row",
    normal((4, 6)),
)
def sums_over_blocks(mended: bool) -> Operator:
    class Norm(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x - x.mean(-1, keepdim=True)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            parts = []
            for part in dy.split(2):
                total = part.sum(-1, keepdim=True) if mended else part.sum()
                parts.append(part - total / x.shape[-1])
            return torch.cat(parts)

    return Norm.apply


@bug("flagos-ai/FlagGems#5392", "layer norm backward takes all axes but the first for the row", normal((2, 3, 4)))
def rank_three(mended: bool) -> Operator:
    class Norm(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.nn.functional.layer_norm(x, x.shape[-1:])

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            rows = x.numel() // x.shape[-1] if mended else x.shape[0]
            x2, dy2 = x.reshape(rows, -1), dy.reshape(rows, -1)
            root = torch.rsqrt(x2.var(-1, unbiased=False, keepdim=True) + 1e-5)
            unit = (x2 - x2.mean(-1, keepdim=True)) * root
            dx = root * (dy2 - dy2.mean(-1, keepdim=True) - unit * (dy2 * unit).mean(-1, keepdim=True))
            return dx.reshape(x.shape)

    return Norm.apply


@bug(
    "tensorflow/tensorflow#127690",
    "the gradient of a parameter for each column is summed to one number",
    normal((3, 4), (4,)),
)
def swish_of_columns(mended: bool) -> Operator:
    class Swish(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, beta: Any) -> Any:
            ctx.save_for_backward(x, beta)
            return x * torch.sigmoid(beta * x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, beta = ctx.saved_tensors
            s = torch.sigmoid(beta * x)
            dbeta = dy * x * x * s * (1 - s)
            total = dbeta.sum(0) if mended else dbeta.sum().expand(beta.shape)
            return dy * (s + beta * x * s * (1 - s)), total

    return Swish.apply


@bug("lucidrains/triton-transformer#6", "the padding of a block counts in the variance", normal((2, 5)))
def padded_variance(mended: bool) -> Operator:
    class Norm(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            block = torch.nn.functional.pad(x, (0, 8 - x.shape[-1]))
            away = block - x.mean(-1, keepdim=True)
            if mended:
                away = away[:, : x.shape[-1]]
            variance = (away * away).sum(-1, keepdim=True) / x.shape[-1]
            return away[:, : x.shape[-1]] * torch.rsqrt(variance + 1e-5)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            root = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
            unit = (x - x.mean(-1, keepdim=True)) * root
            return root * (dy - dy.mean(-1, keepdim=True) - unit * (dy * unit).mean(-1, keepdim=True))

    return Norm.apply
