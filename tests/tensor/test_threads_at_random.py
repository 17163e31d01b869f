"""Threads that do random eager work under random modes: each comes to the gradients that it comes to alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from random import Random
from typing import Any

import numpy as np
from running_threads import together

import app
from app.autograd import PyLayer
from app.graph import names, static_mode

SHARED = [app.no_grad(), app.enable_grad()]
"""Contexts that all threads enter, and leave, at any time."""
WEIGHT = app.to_tensor(np.linspace(-0.5, 0.5, 3, dtype="float32"), stop_gradient=False)
"""A parameter of all threads."""


class Double(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        assert ctx.saved_tensor()[0].shape == gradient.shape
        return gradient * 2.0


@app.no_grad()
def without(x: Any) -> Any:
    return (x * 3.0).exp()


OPERATORS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - without(y),
    lambda x, y: app.tanh(x) / (1.5 + y * y),
    lambda x, y: app.concat([x[1:], y[:1]]),
    lambda x, y: Double.apply(x) - y,
    lambda x, y: app.where(x > y, x, y),
    lambda x, y: (x * 0.1).clone().add_(y),
    lambda x, y: x.detach() * y,
    lambda x, y: x * WEIGHT + y,
    lambda x, y: x.reshape([3, 1]).matmul(y.reshape([1, 3])).mean(0),
]


class Work:
    """What one thread does: a random tree of blocks, each under a mode, and operators on what came before."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        numbers = np.random.default_rng(seed)
        self.leaves = [app.to_tensor(numbers.uniform(-0.5, 0.5, 3), stop_gradient=i == 2) for i in range(3)]
        self.values = list(self.leaves)
        self.results: list[Any] = []

    def __call__(self) -> list[Any]:
        self.block(3)
        loss = app.add_n([value.sum() for value in self.values])
        loss.backward()
        return [*self.results, *(None if x.grad is None else x.grad.numpy().tobytes() for x in self.leaves)]

    def block(self, depth: int) -> None:
        for _ in range(self.random.randint(2, 4)):
            if depth and self.random.random() < 0.5:
                with self.mode():
                    self.block(depth - 1)
            else:
                x, y = self.random.choices(self.values, k=2)
                value = app.tanh(self.random.choice(OPERATORS)(x, y))
                self.values.append(value)
                self.results.append((value.stop_gradient, value.numpy().tobytes()))
            if not self.values[-1].stop_gradient and self.random.random() < 0.2:
                inputs = [*self.leaves[:2], WEIGHT]
                gradients = app.grad(self.values[-1], inputs, retain_graph=True, allow_unused=True)
                self.results.append([None if g is None else g.numpy().tobytes() for g in gradients])

    def mode(self) -> Any:
        kind = self.random.randrange(6)
        if kind < 2:
            return SHARED[kind]
        if kind == 2:
            return app.set_grad_enabled(self.random.random() < 0.5)
        if kind == 3:
            return static_mode()  # which says nothing of operators on Tensors
        return names.guard() if kind == 4 else nullcontext()


def check(seed: int) -> None:
    """Two to four threads come to what each comes to alone."""
    seeds = [10 * seed + i for i in range(2 + seed % 3)]
    alone = [Work(number)() for number in seeds]
    assert together([Work(number) for number in seeds]) == alone
    assert app.is_grad_enabled()


def test_threads_at_random():
    for seed in range(8):
        check(seed)
