"""Elementwise functions and their gradients are within the bounds of `accuracy_rows.py`, in every engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from accuracy_rows import ROWS, Formula, Row

import app
from app import static, to_tensor
from app.ops.definition import REGISTRY
from app.ops.lowering import Elementwise

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
ENGINES = ("eager", "reference", "compiled")
NOT_HERE = {"floor_divide", "increment", "isclose", "remainder", "where"}
"""Exact by construction, or made of rounding, where one unit decides between two results."""


def numbers(dtype: str, sparse: int) -> np.ndarray:
    """Every finite number of half precision; of single precision one of many, and grids about 0. Or one of `sparse`."""
    if dtype == "float16":
        values = np.arange(2**16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    else:
        every = np.arange(0, 2**32, 4093, dtype=np.uint64).astype(np.uint32).view(np.float32)
        values = np.concatenate([every, np.linspace(-110, 110, 200_003), np.linspace(-1, 1, 200_003)]).astype("float32")
    return values[np.isfinite(values)][::sparse]


def inputs_of(row: Row, dtype: str, sparse: int) -> list[np.ndarray]:
    x = numbers(dtype, sparse)
    arrays = [x]
    if len(row.slopes) > 1:
        near = np.where(np.arange(x.size) % 2, x, np.random.default_rng(1).uniform(0, 1, x.size)).astype(dtype)
        arrays = [np.random.default_rng(seed).permutation(near) for seed in range(len(row.slopes))]
    inside = np.broadcast_to(row.domain(*(v.astype(np.float64) for v in arrays)), x.shape)
    return [v[inside] for v in arrays]


def off_by(values: np.ndarray, formula: Formula, inputs: Sequence[np.ndarray], near: Any) -> np.ndarray:
    """By how many units each number is off; infinity is the number after the largest."""
    right = np.asarray(formula(*(v.astype(np.float64) for v in inputs)), np.float64)
    info = np.finfo(values.dtype)
    after = 2.0**info.maxexp
    is_number = ~np.isnan(right)
    np.testing.assert_array_equal(np.isnan(values), ~is_number)
    right, actual = (np.clip(each, -after, after) for each in (right, values.astype(np.float64)))
    size = np.maximum(np.abs(right), near(*inputs) if callable(near) else near)
    exponent = np.clip(np.frexp(size)[1] - 1, info.minexp, info.maxexp - 1)
    unit = np.ldexp(1.0, exponent - info.nmant)
    return np.where(is_number, np.abs(actual - right) / unit, 0)


def results(row: Row, inputs: Sequence[np.ndarray], engine: str) -> list[np.ndarray]:
    """The value, and the slope along each input."""
    if engine == "eager":
        tensors = [to_tensor(v, stop_gradient=False) for v in inputs]
        value = row.function(*tensors)
        return [value.numpy(), *(g.numpy() for g in app.grad(value, tensors, [app.ones_like(value)]))]
    program = static.Program()
    with static.program_guard(program, static.Program()):
        variables = [static.data(f"x{i}", [None], str(v.dtype)) for i, v in enumerate(inputs)]
        for variable in variables:
            variable.stop_gradient = False
        value = row.function(*variables)
        fetch = [value, *static.gradients(value, variables)]
    return static.Executor(engine=engine).run(program, {f"x{i}": v for i, v in enumerate(inputs)}, fetch)


def assert_within_bounds(name: str, dtype: str, engine: str, sparse: int) -> None:
    row = ROWS[name]
    inputs = inputs_of(row, dtype, sparse)
    value, *slopes = results(row, inputs, engine)
    checks = [("value", value, row.right, row.bound, row.near)]
    checks += [
        ("slope", s, formula, row.slope_bound, row.slope_near) for s, formula in zip(slopes, row.slopes, strict=True)
    ]
    for what, values, formula, bound, near in checks:
        off = off_by(values, formula, inputs, near)
        worst = int(np.argmax(off))
        at = ", ".join(str(v[worst]) for v in inputs)
        assert off[worst] <= bound, (
            f"{what} of {name} at {at} in {dtype} is {values[worst]}: {off[worst]:.4g} units off"
        )


def test_every_elementwise_operator_with_a_gradient_has_a_row():
    of_floats = {
        name
        for name, op in REGISTRY.items()
        if isinstance(op.lowering, Elementwise) and op.differentiable and op.broadcasts
    }
    assert of_floats - NOT_HERE <= ROWS.keys()


BUILT_IN = [name for name in ROWS if not name.startswith("derived")]
DERIVED = [f"derived {text}" for text in ("np.log1p(np.exp(x))", "x / (1 + np.exp(-x))", "np.arccosh(x)", "np.tanh(x)")]
"""Some of those that are compiled; the others in the soak."""


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in BUILT_IN),
        *(pytest.param(name, "float32", marks=pytest.mark.slow) for name in DERIVED),
        *((name, "float16") for name in BUILT_IN),  # derived ones are derived once for all types
        pytest.param("derived np.tanh(x)", "float16", marks=pytest.mark.slow),
    ],
)
def test_values_and_slopes_are_within_their_bounds(name: str, dtype: str):
    assert_within_bounds(name, dtype, "eager", sparse=37 if dtype == "float16" else 997)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["silu", "elu"])
def test_compiled_values_and_slopes_are_within_the_same_bounds(name: str):
    assert_within_bounds(name, "float32", "compiled", sparse=97)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", ROWS)
def test_values_and_slopes_of_all_numbers_are_within_their_bounds(name: str, dtype: str, engine: str):
    assert_within_bounds(name, dtype, engine, sparse=1)
