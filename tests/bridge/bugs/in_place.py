"""The operator writes into what belongs to others, or keeps it too long."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from bugs import Operator, bug
from bugs.inputs import normal


@bug("NVIDIA/apex#1430", "backward writes its result into the incoming gradient", normal((3, 4)))
def into_dy(mended: bool) -> Operator:
    class Softmax(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.softmax(-1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensors
            result = dy.clone() if mended else dy
            result -= (dy * y).sum(-1, keepdim=True)
            result *= y
            return result

    return Softmax.apply


@bug("linkedin/Liger-Kernel#272", "forward writes the gradient into its input", normal((3, 5)))
def into_input(mended: bool) -> Operator:
    class CrossEntropy(Function):
        @staticmethod
        def forward(ctx: Any, logits: Any) -> Any:
            loss = (logits.logsumexp(-1) - logits[:, 0]).mean()
            gradient = logits.clone() if mended else logits
            gradient.copy_(logits.softmax(-1))
            gradient[:, 0] -= 1
            gradient /= len(logits)
            ctx.save_for_backward(gradient.detach())
            return loss

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * ctx.saved_tensors[0]

    return CrossEntropy.apply


@bug("dmlc/dgl#1046", "backward clears what it saved, so that a second backward pass fails", normal((3, 4)))
def cleared(mended: bool) -> Operator:
    class Tanh(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.tanh()
            ctx.kept = [y.clone()]
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.kept
            if not mended:
                ctx.kept = None
            return dy * (1 - y * y)

    return Tanh.apply


@bug(
    "axolotl-ai-cloud/axolotl#3892",
    "backward overwrites its saved buffer: a second pass gives other numbers",
    normal((3, 4)),
)
def overwritten_buffer(mended: bool) -> Operator:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.buffer = x.detach().clone()
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, dy: Any) -> Any:
            buffer = ctx.buffer.clone() if mended else ctx.buffer
            return buffer.mul_(2).mul_(dy).clone()

    return Square.apply


@bug(
    "linkedin/Liger-Kernel#254",
    "backward of SwiGLU stores gradients in its saved inputs, which others saved, too",
    normal((3, 4), (3, 4)),
)
def swiglu(mended: bool) -> Operator:
    class SwiGLU(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return torch.nn.functional.silu(a) * b

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, dy: Any) -> Any:
            a, b = ctx.saved_tensors
            s = torch.sigmoid(a)
            da, db = dy * b * (s + a * s * (1 - s)), dy * a * s
            if mended:
                return da, db
            a.numpy()[...], b.numpy()[...] = da.numpy(), db.numpy()
            return a.clone(), b.clone()

    return SwiGLU.apply


@bug(
    "pytorch/pytorch#75312",
    "backward changes one element of an incoming gradient, all of which are one in memory",
    normal((5,)),
)
def one_element(mended: bool) -> Operator:
    class ZeroFirst(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.clone()
            y[0] = 0
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            dx = dy.clone() if mended else dy
            dx[0] = 0
            return dx

    return ZeroFirst.apply


@bug("pytorch/pytorch#25340", "the output is kept on ctx: a cycle, which is never freed", normal((3, 4)))
def output_on_ctx(mended: bool) -> Operator:
    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            if mended:
                ctx.save_for_backward(y)
            else:
                ctx.y = y
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * (ctx.saved_tensors[0] if mended else ctx.y)

    return Exp.apply


@bug("dmlc/dgl#1060", "every call adds to a list of the module, which is never emptied", normal((3, 4)))
def kept_for_ever(mended: bool) -> Operator:
    outputs: list[Any] = []

    class Sigmoid(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = torch.sigmoid(x)
            ctx.save_for_backward(y)
            if not mended:
                outputs.append(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensors
            return dy * y * (1 - y)

    return Sigmoid.apply


@bug(
    "ScalingIntelligence/KernelBench#165",
    "the result of the first call is returned again for all inputs of its shape",
    normal((3, 4)),
)
def cached_result(mended: bool) -> Operator:
    results: dict[Any, Any] = {}

    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp() if mended else results.setdefault(x.shape, x.exp()).clone()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * ctx.saved_tensors[0]

    return Exp.apply


@bug(
    "ScalingIntelligence/KernelBench#165 (second)",
    "memory that was never written is returned where it has zeros",
    normal((3, 4)),
)
def zeros(mended: bool) -> Operator:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * dy if mended else torch.zeros_like(x)

    return Square.apply
