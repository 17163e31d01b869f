"""Random Functions, which differ in what they save, mark and return: first and second derivatives are PyTorch's.

On Tensors and in Programs they must agree, and with PyTorch itself where it is installed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.autograd import Function

SEEDS = range(20)

NUMBERS = [np.array([0.5, -1.25, 2.0]), np.array([1.5, 0.75, -0.5])]
WEIGHTS = [np.array([1.0, 2.0, 3.0]), np.array([2.0, -1.0, 0.5])]


def function_of(seed: int, base: type) -> Callable[[Any, Any], Any]:
    """A function of two values that applies a random class of a base class."""
    chosen = random.Random(seed)
    count, outputs = chosen.randint(1, 3), chosen.randint(1, 3)
    values = [*range(count), *range(count, count + chosen.randint(1, 3))]
    products = [(chosen.choice(values[:place]), chosen.choice(values[:place])) for place in values[count:]]
    fresh = values[count:]
    returned = [chosen.choice(fresh if chosen.random() < 0.65 else values) for _ in range(outputs)]
    saved = [chosen.choice([*values[:count], *returned, None]) for _ in range(chosen.randint(0, 3))]
    attribute = chosen.choice([None, *values[:count], *returned])
    marked = [place for place in sorted({*returned} & {*fresh}) if chosen.random() < 0.2]
    materialized = chosen.random() < 0.75
    terms = [
        [
            (slot, chosen.choice([1.0, 2.0, -1.0]), chosen.randint(0, 4))
            for slot in range(outputs)
            if chosen.random() < 0.8
        ]
        for _ in range(count)
    ]

    def forward(ctx, *inputs):
        tensors = list(inputs)
        for a, b in products:
            tensors.append(tensors[a] * tensors[b] + tensors[b] * 2.0)
        ctx.set_materialize_grads(materialized)
        ctx.mark_non_differentiable(*(tensors[place] for place in marked))
        ctx.save_for_backward(*(None if place is None else tensors[place] for place in saved))
        ctx.kept = None if attribute is None else tensors[attribute]
        return tuple(tensors[place] for place in returned)

    def backward(ctx, *douts):
        factors = [value for value in (*ctx.saved_tensors, ctx.kept) if value is not None]
        gradients: list[Any] = []
        for term in terms:
            gradient = None
            for slot, number, factor in term:
                if douts[slot] is not None:
                    added = douts[slot] * number * (factors[factor] if factor < len(factors) else 1.0)
                    gradient = added if gradient is None else gradient + added
            gradients.append(gradient)
        return tuple(gradients)

    cus: Any = type("Random", (base,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    arguments = [chosen.choice([0, 1, 2, 3]) for _ in range(count)]
    squared = [chosen.random() < 0.5 for _ in returned]

    def function(a: Any, b: Any) -> Any:
        results = cus.apply(*([a, b, a * b, b * 1.0][place] for place in arguments))
        total = a * 0.5
        for result, twice in zip(results, squared, strict=True):
            total = total + (result * result if twice else result * b)
        return total

    return function


Gradients = Callable[[Any, Sequence[Any]], Sequence[Any]]


def derivatives(function: Callable[..., Any], values: Sequence[Any], weights: Any, gradients: Gradients) -> list[Any]:
    """The result and its first and second derivatives; None for those that are not there."""
    y = function(*values)
    first = gradients((y * weights[0]).sum(), values)
    connected = [g for g in first if g is not None and not getattr(g, "stop_gradient", False)]
    connected = [g for g in connected if getattr(g, "requires_grad", True)]
    if not connected:
        return [y, *first, None, None]
    total = connected[0] * 0.0
    for gradient in connected:
        total = total + gradient * weights[1]
    return [y, *first, *gradients(total.sum(), values)]


def on_tensors(seed: int) -> list[Any]:
    values = [app.to_tensor(array, stop_gradient=False) for array in NUMBERS]
    results = derivatives(
        function_of(seed, Function),
        values,
        [app.to_tensor(array) for array in WEIGHTS],
        lambda y, x: app.grad(y, x, create_graph=True, allow_unused=True),
    )
    return [None if value is None else value.numpy() for value in results]


def in_a_program(seed: int) -> list[Any]:
    names, program = "abvw", static.Program()
    with static.program_guard(program):
        data = [static.data(name, [3], "float64") for name in names]
        data[0].stop_gradient = data[1].stop_gradient = False
        results = derivatives(
            function_of(seed, Function), data[:2], data[2:], lambda y, x: static.gradients([y], list(x))
        )
    feed = dict(zip(names, [*NUMBERS, *WEIGHTS], strict=True))
    fetched = static.Executor(engine="reference").run(program, feed, [value for value in results if value is not None])
    arrays = iter(fetched)
    return [None if value is None else next(arrays) for value in results]


def in_pytorch(seed: int) -> list[Any]:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    results = derivatives(
        function_of(seed, torch.autograd.Function),
        [torch.tensor(array, requires_grad=True) for array in NUMBERS],
        [torch.tensor(array) for array in WEIGHTS],
        lambda y, x: torch.autograd.grad(y, x, create_graph=True, allow_unused=True),
    )
    return [None if value is None else value.detach().numpy() for value in results]


def check(seed: int, other: Callable[[int], list[Any]] = in_a_program) -> None:
    for actual, expected in zip(on_tensors(seed), other(seed), strict=True):
        actual, expected = (np.zeros(3) if value is None else value for value in (actual, expected))
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("other", [in_a_program, pytest.param(in_pytorch, marks=pytest.mark.slow)])
def test_a_random_function_has_the_same_derivatives_everywhere(seed: int, other: Callable[[int], list[Any]]):
    check(seed, other)
