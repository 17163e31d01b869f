"""The first derivative is right, the second is not; and operators that are not what they declare."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from bugs import Operator, bug
from bugs.inputs import normal, positive


@bug("pytorch/pytorch#58509", "an intermediate is kept on ctx: its part of the second derivative is lost", normal((4,)))
def intermediate(mended: bool) -> Operator:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.double = x * 2
            ctx.save_for_backward(x)
            return (x * 2) ** 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 4 * (2 * x if mended else ctx.double) * dy

    return Square.apply


@bug("pytorch/pytorch#76185", "backward uses a temporary of forward, without its gradient", positive((4,)))
def temporary(mended: bool) -> Operator:
    class Six(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.temporary = x * x
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            return dy * 3 * (x * x if mended else ctx.temporary)

    return Six.apply


@bug(
    "pytorch/pytorch#106789",
    "the second derivative of a product with two zeros is zero",
    lambda: (torch.tensor([2.0, 3.0, 0.0, 0.0], dtype=torch.float64),),
)
def product_with_zeros(mended: bool) -> Operator:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.prod()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            if not mended and int((x == 0).sum()) > 1:
                return torch.zeros_like(x)
            others = [torch.cat([x[:i], x[i + 1 :]]).prod() for i in range(len(x))]
            return dy * torch.stack(others)

    return Product.apply


@bug(
    "pytorch/pytorch#154537",
    "the fake gives the type of the input, the operator gives a wider one",
    lambda: (torch.arange(4, dtype=torch.float32),),
)
def widening(mended: bool) -> Operator:
    name = f"opsmith_bugs::widening_{'mended' if mended else 'wrong'}"

    @torch.library.custom_op(name, mutates_args=())
    def widening(x: torch.Tensor) -> torch.Tensor:
        return x.double() * 2

    widening.register_fake(lambda x: torch.empty_like(x, dtype=torch.float64 if mended else x.dtype))
    widening.register_autograd(
        lambda ctx, dy: (2 * dy).to(ctx.dtype),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "dtype", inputs[0].dtype),
    )
    return widening


@bug("pytorch/pytorch#124918", "the operator writes into an argument and does not declare it", normal((4,)))
def undeclared(mended: bool) -> Operator:
    name = f"opsmith_bugs::undeclared_{'mended' if mended else 'wrong'}"

    @torch.library.custom_op(name, mutates_args=())
    def undeclared(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        if not mended:
            x.mul_(0.5)
        return y

    undeclared.register_fake(torch.empty_like)
    undeclared.register_autograd(
        lambda ctx, dy: dy * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return undeclared
