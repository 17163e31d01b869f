"""A factor or a term of the gradient is wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from bugs import Operator, bug
from bugs.inputs import normal, positive


@bug("k2-fsa/k2#341", "backward of the total scores does not multiply by the incoming gradient", normal((4, 5)))
def total_scores(mended: bool) -> Operator:
    class TotalScores(Function):
        @staticmethod
        def forward(ctx: Any, scores: Any) -> Any:
            ctx.save_for_backward(scores)
            return scores.logsumexp(-1)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (scores,) = ctx.saved_tensors
            return scores.softmax(-1) * (dy.unsqueeze(-1) if mended else 1.0)

    return TotalScores.apply


@bug(
    "zergtant/pytorch-handbook#69",
    "backward forgets the constant that forward multiplies by",
    normal((3, 4), and_then=(2.5,)),
)
def times_constant(mended: bool) -> Operator:
    class TimesConstant(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, constant: float) -> Any:
            ctx.constant = constant
            return x * constant

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return (dy * ctx.constant if mended else dy), None

    return TimesConstant.apply


@bug(
    "pytorch/pytorch#4355",
    "backward of ISRLU returns the slope, not its product with the incoming gradient",
    normal((5, 4), and_then=(1.0,)),
)
def isrlu(mended: bool) -> Operator:
    class ISRLU(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, alpha: float) -> Any:
            root = torch.rsqrt(1 + alpha * x.clamp(max=0) ** 2)
            ctx.save_for_backward(x)
            ctx.alpha = alpha
            return x * root

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            slope = torch.rsqrt(1 + ctx.alpha * x.clamp(max=0) ** 2) ** 3
            return (dy * slope if mended else slope), None

    return ISRLU.apply


@bug("pytorch/pytorch#995", "backward of a product over all elements ignores the incoming gradient", positive((6,)))
def product(mended: bool) -> Operator:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.prod()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            return x.prod() / x * (dy if mended else 1.0)

    return Product.apply


@bug(
    "linkedin/Liger-Kernel#1298", "all rows are multiplied by the first number of the incoming gradient", normal((4, 6))
)
def cross_entropy_rows(mended: bool) -> Operator:
    class CrossEntropy(Function):
        @staticmethod
        def forward(ctx: Any, logits: Any) -> Any:
            ctx.save_for_backward(logits)
            return logits.logsumexp(-1) - logits[:, 0]

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (logits,) = ctx.saved_tensors
            gradient = logits.softmax(-1)
            first = torch.zeros_like(gradient)
            first[:, 0] = 1
            return (gradient - first) * (dy.unsqueeze(-1) if mended else dy.reshape(-1)[:1])

    return CrossEntropy.apply


@bug("karpathy/llm.c#763", "backward of RMSNorm forgets the weight", normal((3, 8), (8,)))
def rms_norm(mended: bool) -> Operator:
    class RMSNorm(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            ctx.save_for_backward(x, weight)
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, weight = ctx.saved_tensors
            root = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
            unit = x * root
            scaled = dy * weight if mended else dy
            dx = root * (scaled - unit * (scaled * unit).mean(-1, keepdim=True))
            return dx, (dy * unit).sum(0)

    return RMSNorm.apply


@bug(
    "paiml/aprender#2182",
    "the gradient of a sum over the batch is divided by its size, as that of a mean",
    normal((4, 5)),
)
def summed_cross_entropy(mended: bool) -> Operator:
    class SummedCrossEntropy(Function):
        @staticmethod
        def forward(ctx: Any, logits: Any) -> Any:
            ctx.save_for_backward(logits)
            return (logits.logsumexp(-1) - logits[:, 1]).sum()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (logits,) = ctx.saved_tensors
            first = torch.zeros_like(logits)
            first[:, 1] = 1
            return dy * (logits.softmax(-1) - first) / (1 if mended else len(logits))

    return SummedCrossEntropy.apply


@bug("tenstorrent/tt-metal#53215", "layer norm subtracts the mean of the gradient twice", normal((3, 8)))
def layer_norm_twice(mended: bool) -> Operator:
    class LayerNorm(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.nn.functional.layer_norm(x, x.shape[-1:])

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            root = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
            unit = (x - x.mean(-1, keepdim=True)) * root
            mean = dy.mean(-1, keepdim=True) * (1 if mended else 2)
            return root * (dy - mean - unit * (dy * unit).mean(-1, keepdim=True))

    return LayerNorm.apply


@bug("wkcn/mobula#3", "backward of softmax has the diagonal of the Jacobian only", normal((3, 5)))
def softmax(mended: bool) -> Operator:
    class Softmax(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.softmax(-1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensors
            return y * (dy - (dy * y).sum(-1, keepdim=True)) if mended else dy * y * (1 - y)

    return Softmax.apply


@bug(
    "PaddlePaddle/Paddle#28622",
    "rows with the label to be ignored get a gradient",
    lambda: (*normal((4, 5))(), torch.tensor([0, -1, 3, -1])),
)
def ignored_labels(mended: bool) -> Operator:
    class CrossEntropy(Function):
        @staticmethod
        def forward(ctx: Any, logits: Any, labels: Any) -> Any:
            ctx.save_for_backward(logits, labels)
            loss = logits.logsumexp(-1) - logits.gather(1, labels.clamp(min=0)[:, None])[:, 0]
            return loss * (labels >= 0)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            logits, labels = ctx.saved_tensors
            gradient = logits.softmax(-1)
            gradient[torch.arange(len(labels)), labels.clamp(min=0)] -= 1
            gradient = gradient * dy[:, None]
            return (gradient * (labels >= 0)[:, None] if mended else gradient), None

    return CrossEntropy.apply


@bug("state-spaces/mamba#1023", "backward of dropout draws another mask than forward", normal((6, 8), and_then=(3,)))
def dropout(mended: bool) -> Operator:
    def masked(x: Any, seed: int) -> Any:
        return 2 * x * (torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) > 0.5)

    class Dropout(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, seed: int) -> Any:
            ctx.seed = seed
            return masked(x, seed)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return masked(dy, ctx.seed if mended else ctx.seed + 1), None

    return Dropout.apply


@bug(
    "state-spaces/mamba#1023 (second)",
    "the gradient of the second of two scaled inputs is not scaled",
    normal((3, 4), (3, 4), (6, 1)),
)
def two_scaled_inputs(mended: bool) -> Operator:
    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, scale: Any) -> Any:
            ctx.save_for_backward(a, b, scale)
            return a * scale[: len(a)] + b * scale[len(a) :]

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            a, b, scale = ctx.saved_tensors
            low, high = scale[: len(a)], scale[len(a) :]
            dscale = torch.cat([(dy * a).sum(1, keepdim=True), (dy * b).sum(1, keepdim=True)])
            return dy * low, (dy * high if mended else dy), dscale

    return Scaled.apply


@bug("jmschrei/cherimoya#25", "contributions to one element from several taps overwrite each other", normal((8,), (3,)))
def dilated_convolution(mended: bool) -> Operator:
    class Convolution(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x[:-2] * w[0] + x[1:-1] * w[1] + x[2:] * w[2]

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensors
            dx = torch.zeros_like(x)
            for tap in range(3):
                part = slice(tap, tap + len(dy))
                dx[part] = (dx[part] if mended else 0) + dy * w[tap]
            return dx, torch.stack([(dy * x[t : t + len(dy)]).sum() for t in range(3)])

    return Convolution.apply
