"""One function, applied to Tensors and to Variables, gives equal values and equal gradients.

The functions are generated: a list of steps, each of which takes values made before it and makes another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from steps_over_rows import COLUMNS, ONE, TWO, Step, steps_of

import app
from app import static
from app.graph import names

programs = st.lists(steps_of(ONE, TWO), min_size=1, max_size=5)


def evaluate(steps: Sequence[Step], inputs: Sequence[Any]) -> Any:
    """The number that the steps compute: the same code for Tensors and Variables."""
    values = list(inputs)
    for step in steps:
        values.append(step.apply(values))
    return app.mean(values[-1] * values[-1]) + app.sum(app.tanh(values[-2]))


def three_columns(inputs: Sequence[Any]) -> list[Any]:
    """The last input, which may have another shape, broadcast against the second."""
    *first, second, last = inputs
    return [*first, second, second - last]


def eager(steps: Sequence[Step], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    tensors = [app.to_tensor(a, stop_gradient=False) for a in arrays]
    result = evaluate(steps, three_columns(tensors))
    found = app.grad(result, tensors, allow_unused=True)
    return [
        result.numpy(),
        *(np.zeros(a.shape) if g is None else g.numpy() for g, a in zip(found, arrays, strict=True)),
    ]


def built(steps: Sequence[Step], shapes: Sequence[Sequence[int | None]]) -> tuple[static.Program, list[Any]]:
    program = static.Program()
    with names.guard(), static.program_guard(program, static.Program()):
        variables = [static.data(f"x{i}", shape, "float64") for i, shape in enumerate(shapes)]
        for variable in variables:
            variable.stop_gradient = False
        result = evaluate(steps, three_columns(variables))
        return program, [result, *static.gradients(result, variables)]


def in_program(program: static.Program, fetch: Sequence[Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    feed = {f"x{i}": array for i, array in enumerate(arrays)}
    values = iter(static.Executor().run(program, feed, [f for f in fetch if f is not None]))
    zeros = [np.zeros(()), *(np.zeros(a.shape) for a in arrays)]
    return [zero if f is None else next(values) for f, zero in zip(fetch, zeros, strict=True)]


def numbers(seed: int, *shapes: Sequence[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, shape) for shape in shapes]


@settings(max_examples=60, deadline=None)
@given(programs, st.integers(0, 99))
def test_values_and_gradients_agree_whether_sizes_are_known_or_not(steps: list[Step], seed: int):
    known = [numbers(seed, (2, COLUMNS), (1, COLUMNS), (COLUMNS,))]
    sizes = ((1, 1), (4, 4), (4, 1), (1, 4))
    unknown = [numbers(seed, (rows, COLUMNS), (1, COLUMNS), (others, 1)) for rows, others in sizes]
    for runs, shapes in (
        (known, [(2, COLUMNS), (1, COLUMNS), (COLUMNS,)]),
        (unknown, [(None, COLUMNS), (1, COLUMNS), (None, 1)]),
    ):
        program, fetch = built(steps, shapes)
        for arrays in runs:
            for mine, expected in zip(in_program(program, fetch, arrays), eager(steps, arrays), strict=True):
                assert mine.shape == expected.shape
                np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(programs, st.integers(0, 99))
def test_second_derivatives_agree(steps: list[Step], seed: int):
    array = numbers(seed, (2, COLUMNS))[0]

    tensor = app.to_tensor(array, stop_gradient=False)
    (first,) = app.grad(evaluate(steps, [tensor, tensor * 2.0]), tensor, create_graph=True)
    (expected,) = app.grad(app.sum(first * first), tensor)

    program = static.Program()
    with names.guard(), static.program_guard(program, static.Program()):
        x = static.data("x", [None, COLUMNS], "float64")
        x.stop_gradient = False
        (slope,) = static.gradients(evaluate(steps, [x, x * 2.0]), x)
        (second,) = static.gradients(app.sum(slope * slope), x)
        (mine,) = static.Executor().run(program, {"x": array}, [second])
    np.testing.assert_allclose(mine, expected.numpy(), rtol=1e-8, atol=1e-8)
