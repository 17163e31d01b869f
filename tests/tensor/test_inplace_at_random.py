"""Random programs that change Tensors and views in place: NumPy's numbers and right gradients, or a refusal."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import app
from app.errors import InPlaceError

START = np.linspace(-1.2, 1.7, 12).reshape(3, 4)
WEIGHTS = np.cos(np.arange(24.0))


def lines_of(seed: int) -> list[str]:
    """The statements of a program with the variables a, b and c; `copy` and `sum` are those of the library."""
    draw = Random(seed)
    lines = []
    for _ in range(draw.randint(2, 7)):
        target, source = draw.choice("abc"), draw.choice("abc")
        lines.append(
            draw.choice(
                [
                    f"{target} = {source} * 1.5",
                    f"{target} = {source}",
                    *[f"{target} = copy({source})"] * 4,
                    f"{target} = {source}[1:]",
                    f"{target} = {source}.T",
                    f"{target} = {source}.reshape([-1, 2])",
                    f"{target} = {source}[::-1]",
                    f"{target} = {source} * sum({draw.choice('abc')})",
                    f"multiply({target}, 0.5)",
                    f"multiply({target}, sum({source}))",
                    f"add({target}, {source}[:1, :1])",
                    f"{target}[0] = sum({source})",
                    f"{target}[:, 1:] = {source}[0, 0]",
                    f"{target}[1:] = {target}[:-1]",
                    f"{target}[[0, -1, 0], [0, 0, 0]] = sum({source})",
                ]
            )
        )
    return lines


def run(lines: list[str], names: dict[str, Any]) -> Any:
    for line in lines:
        exec(line, names)
    return names["sum"](names["a"]) + names["sum"](names["b"]) + names["sum"](names["c"])


def with_numpy(lines: list[str], x: np.ndarray) -> float:
    names = {
        "a": x * 1.0, "b": x * 2.0, "c": x * -0.5, "copy": np.copy,
        "sum": lambda v: (v.ravel() * WEIGHTS[: v.size]).sum(),
        "multiply": lambda v, by: np.multiply(v, by, out=v), "add": lambda v, by: np.add(v, by, out=v),
    }  # fmt: skip
    return float(run(lines, names))


def check(seed: int) -> None:
    """A program is right or refused."""
    is_accepted(seed)


def is_accepted(seed: int) -> bool:
    """Whether a program is not refused; then its result and its gradient are right."""
    lines, x = lines_of(seed), app.to_tensor(START, stop_gradient=False)
    weights = app.to_tensor(WEIGHTS)
    names = {
        "a": x * 1.0, "b": x * 2.0, "c": x * -0.5, "copy": lambda v: v.clone(),
        "sum": lambda v: (v.reshape([-1]) * weights[: int(np.prod(v.shape))]).sum(),
        "multiply": lambda v, by: v.multiply_(by), "add": lambda v, by: v.add_(by),
    }  # fmt: skip
    try:
        expected = with_numpy(lines, START)
    except (IndexError, ValueError):  # a part that is empty, or a shape that does not fit
        return True
    try:
        result = run(lines, names)
        result.backward()
    except InPlaceError:
        return False
    text = "\n".join(lines)
    np.testing.assert_allclose(result.item(), expected, rtol=1e-9, atol=1e-9, err_msg=text)
    slopes = np.zeros_like(START)
    for place in np.ndindex(*START.shape):
        step = np.zeros_like(START)
        step[place] = 1e-5
        slopes[place] = (with_numpy(lines, START + step) - with_numpy(lines, START - step)) / 2e-5
    scale = max(1.0, float(np.abs(slopes).max()))
    np.testing.assert_allclose(x.grad.numpy() / scale, slopes / scale, rtol=1e-5, atol=1e-6, err_msg=text)
    return True


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_with_changes_in_place_are_right_or_refused(first: int):
    assert sum(is_accepted(seed) for seed in range(first, first + 20)) >= 2
