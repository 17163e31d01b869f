"""Sums over many numbers: as near to the exact one as NumPy's, over the last axes nearer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import static

pytestmark = pytest.mark.slow

LONG = 2**24 + 100
"""So many ones, added one after the other in single precision, stop at 2 ** 24."""


def fetched(x: np.ndarray, *outs: Callable[[Any], Any], engine: str = "compiled") -> list[np.ndarray]:
    program = static.Program()
    with static.program_guard(program, static.Program()):
        data = static.data("x", [None, *x.shape[1:]], x.dtype.name)
        outputs = [out(data) for out in outs]
    results: list[np.ndarray] = static.Executor(engine=engine).run(program, {"x": x}, outputs)
    return results


def test_sums_of_more_ones_than_single_precision_counts_are_exact():
    x = np.ones((1, LONG), "float32")

    sums = (lambda x: app.sum(x, axis=1), lambda x: app.mean(x, axis=-1), app.sum)
    for engine in ("compiled", "reference"):
        assert [total.item() for total in fetched(x, *sums, engine=engine)] == [LONG, 1, LONG]


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.soak), "float64"])
def test_sums_over_the_last_axes_are_exact_to_the_last_place(dtype: str):
    x = np.random.default_rng(0).uniform(-1, 1, (7, 3, 2003)).astype(dtype)
    exact = x.astype(np.longdouble)
    size = np.abs(exact)
    every = {
        "last": (lambda x: app.sum(x, axis=-1), exact.sum(-1), size.sum(-1)),
        "last two": (lambda x: app.mean(x, axis=[1, 2]), exact.mean((1, 2)), size.mean((1, 2))),
        "all": (app.sum, exact.sum(), size.sum()),
        "squares": (lambda x: app.sum(x * x, axis=-1, keepdim=True), (exact**2).sum(-1, keepdims=True), 1.0),
    }
    *results, rows = fetched(x, *(ours for ours, _, _ in every.values()), lambda x: app.sum(x, axis=[0, 2]))
    for name, result, (_, right, scale) in zip(every, results, every.values(), strict=True):
        error = np.abs(result.astype(np.longdouble) - right) / np.maximum(np.abs(right), scale * 1e-3)
        assert error.max() < 2 * np.finfo(dtype).eps, name
    np.testing.assert_allclose(rows, exact.sum((0, 2)).astype(dtype), rtol=0, atol=float(np.finfo(dtype).eps) * 100)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.soak)])
def test_sums_of_infinities_are_infinite(dtype: str):
    x = np.array([[1, np.inf, 2], [np.inf, 3, -np.inf], [-np.inf, 1, 1], [1, np.nan, 2]], dtype)
    np.testing.assert_array_equal(fetched(x, lambda x: app.sum(x, axis=1))[0], [np.inf, np.nan, -np.inf, np.nan])


def test_softmax_and_its_loss_over_many_classes():
    x = np.random.default_rng(1).uniform(-1, 0, (2, 50021)).astype("float32")
    e = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.longdouble))
    right = e / e.sum(axis=1, keepdims=True)

    def of_loss(x: Any) -> Any:
        return app.softmax_with_cross_entropy(x, app.cast(app.sum(x, axis=1) * 0.0, "int64"))

    *results, losses = fetched(x, app.nn.functional.softmax, lambda x: of_loss(x)[1], lambda x: of_loss(x)[0])
    for probabilities in results:
        np.testing.assert_allclose(probabilities, right.astype("float32"), rtol=2e-6)
    np.testing.assert_allclose(np.exp(-losses.astype("float64")), right[:, :1].astype("float64"), rtol=2e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.soak)])
def test_a_softmax_of_masked_and_of_huge_numbers_is_that_of_the_reference_engine_and_never_zero(dtype: str):
    inf, huge = np.inf, np.finfo(dtype).max
    rows = [[0, -1000, 1], [3, -100, -50], [-inf, 1, 2], [1, 2, -inf], [-huge, 0, huge], [inf, 1, 2], [-inf] * 3]
    both = app.nn.functional.softmax, app.nn.functional.log_softmax
    x = np.array([*rows, [1, np.nan, 2]], dtype)
    results = fetched(x, *both)
    assert results[0][:2].min() > 0
    for result, expected in zip(results, fetched(x, *both, engine="reference"), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)
        assert not np.isnan(result[:5]).any()
