"""Both derivatives beside PyTorch: the same lines run with PyTorch and with the façade of its name.

PyTorch is no part of the development set-up; `pip install -e .[bench]` brings it, and without it these are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app.compat.torch as ours

theirs: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
Line = Callable[..., Any]

ELEMENTWISE: dict[str, Line] = {
    "arithmetic": lambda t, x, y: x * y - x / (y * y + 1) + 2**x,
    "powers": lambda t, x, y: (x * x + 1) ** y,
    "exponentials": lambda t, x, y: t.exp(-x) + t.log(y * y + 1) + t.log1p(x * x) + t.expm1(y),
    "trigonometry": lambda t, x, y: t.sin(x) * t.cos(y) + t.atan(x) + t.tanh(x),
    "roots": lambda t, x, y: t.sqrt(x * x + 1) + t.rsqrt(y * y + 1) + t.reciprocal(x * x + 2),
    "choices": lambda t, x, y: t.where(x > y, x * x, y * x) + t.maximum(x, y) + t.clamp(x, -0.5, 0.5),
    "sigmoids": lambda t, x, y: t.sigmoid(x) + t.nn.functional.softplus(x),
    "erf": lambda t, x, y: t.erf(x) * y,
}
ACROSS: dict[str, Line] = {
    "matmul": lambda t, x, y: x @ y.T,
    "sums": lambda t, x, y: x.sum(0) * y.mean(0) + (x * y).sum(dim=0),
    "spread": lambda t, x, y: (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True) + 1) * y,
    "products": lambda t, x, y: x.prod(1) * y.sum(1),
    "extremes": lambda t, x, y: x.max(1).values * y.min(1).values + t.amax(x, 0).sum(),
    "softmax": lambda t, x, y: t.softmax(x, 1) * y + t.log_softmax(y, 0),
    "logsumexp": lambda t, x, y: t.logsumexp(x, 1) - t.logsumexp(y, 0).sum(),
    "joined": lambda t, x, y: t.cat([x, y * y], 0)[1:, ::2] * t.stack([x, y], 0).sum(),
    "shapes": lambda t, x, y: x.reshape(2, 6).t() * y.permute(1, 0).flatten()[:2],
    "sorted": lambda t, x, y: x.sort(1).values * y + x.sort(0, descending=True)[0],
    "norms": lambda t, x, y: x.norm() + x.norm(dim=1).sum() + y.std(0).sum(),
    "indexed": lambda t, x, y: x[t.tensor([0, 2, 0])] * y + t.gather(x, 1, t.tensor([[0], [3], [1]])),
}
LOSSES: dict[str, Line] = {
    "mse": lambda t, x, y: t.nn.functional.mse_loss(x, y),
    "bce": lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, t.sigmoid(y)),
}
LINES = {**ELEMENTWISE, **ACROSS, **LOSSES}


def derivatives(torch: Any, line: Line) -> list[np.ndarray]:
    """The value, the gradients, and the gradients of a sum of the gradients' squares."""
    draw = np.random.default_rng(7)
    inputs = [torch.tensor(draw.normal(size=(3, 4)), dtype=torch.float64, requires_grad=True) for _ in range(2)]
    value = line(torch, *inputs)
    first = torch.autograd.grad((value * value).sum(), inputs, create_graph=True, allow_unused=True)
    total = sum((g * g).sum() for g in first if g is not None)
    second = torch.autograd.grad(total, inputs, allow_unused=True)
    results = [value, *first, *second]
    return [np.zeros((3, 4)) if tensor is None else tensor.detach().numpy() for tensor in results]


@pytest.mark.parametrize("name", LINES)
def test_values_and_both_derivatives_are_those_of_pytorch(name: str):
    for actual, expected in zip(derivatives(ours, LINES[name]), derivatives(theirs, LINES[name]), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10)


def custom(torch: Any) -> list[np.ndarray]:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            return dy * 3 * x**2

    return derivatives(torch, lambda t, x, y: Cube.apply(x) * y)


def test_a_function_is_derived_twice_as_in_pytorch():
    for actual, expected in zip(custom(ours), custom(theirs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
