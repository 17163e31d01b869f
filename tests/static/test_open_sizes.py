"""Sizes that differ from run to run: they print as -1, and nothing is computed with that number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import ShapeError
from app.nn import functional as F  # noqa: N812 - the name that every tutorial uses

X = np.random.default_rng(0).uniform(0.1, 1.0, [4, 3]).astype("float32")


@pytest.mark.parametrize(
    "use",
    [
        lambda n, x: app.sum(x) / n,
        lambda n, x: n * x,
        lambda n, x: n - 1,
        lambda n, x: 2 // n,
        lambda n, x: n % 2,
        lambda n, x: -n,
        lambda n, x: n > 2,
        lambda n, x: max(n, 1),
        lambda n, x: bool(n),
        lambda n, x: int(n),
        lambda n, x: float(n),
        lambda n, x: range(n),
        lambda n, x: [0] * n,
        lambda n, x: x[:n],
        lambda n, x: np.zeros(n),
        lambda n, x: np.prod(x.shape),
        lambda n, x: app.full(x.shape, 1.0),
        lambda n, x: app.rand(x.shape),
        lambda n, x: app.expand(x[:1], x.shape),
        lambda n, x: app.split(x, n),
    ],
)
def test_uses_of_an_open_size_as_a_number_are_errors(use: Callable[[Any, Any], Any]):
    x = static.data("x", [None, 3])
    with pytest.raises(
        ShapeError, match=r"the size of axis 0 of x \(printed as -1\) is known only when.*opsmith\.shape\(x\)\[0\]"
    ):
        use(x.shape[0], x)


def test_an_open_size_is_printed_and_passed_on_as_minus_one():
    x = static.data("x", [None, 3])
    assert x.shape == (-1, 3)
    assert (str(x.shape), f"{x.shape[0]:3d}", repr(list(x.shape))) == ("(-1, 3)", " -1", "[-1, 3]")
    assert -1 in x.shape
    assert {x.shape[0]: "open"}[-1] == "open"
    assert x.shape[1] * 2 == 6
    assert static.data("y", x.shape).shape == static.InputSpec(x.shape).shape == (-1, 3)
    assert app.reshape(x, [x.shape[0], 3, 1]).shape == (-1, 3, 1)
    assert static.default_main_program().clone().global_block().var("x").shape[0] == -1
    assert all(type(size) is int for size in x.spec.shape)


CALLS: dict[str, Callable[[Any], Any]] = {
    "moveaxis": lambda x: app.moveaxis(x, 0, 1),
    "broadcast_tensors": lambda x: app.broadcast_tensors([x, x.mean(axis=0, keepdim=True)]),
    "broadcast_tensors, open alike": lambda x: app.broadcast_tensors([x, x[0:1]]),
    "var": lambda x: app.var(x, axis=0),
    "weighted cross_entropy": lambda x: F.cross_entropy(x, app.argmax(x, 1), x[0]),
    "smoothed cross_entropy": lambda x: F.cross_entropy(x, app.argmax(x, 1), label_smoothing=0.1),
}


@pytest.mark.parametrize("call", CALLS)
def test_functions_of_the_library_are_right_for_open_sizes(call: str):
    expected = CALLS[call](app.to_tensor(X))
    actual = static.Executor().run(feed={"x": X}, fetch_list=CALLS[call](static.data("x", [-1, 3])))
    for one, other in zip(actual, expected if isinstance(expected, list) else [expected], strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-5)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_an_open_size_beside_a_size_that_is_left(engine: str):
    """As people write it eagerly: `reshape(x, [x.shape[0], -1])`."""
    x = static.data("x", [None, 2, 3])
    other = static.data("other", [6, None])
    rows = app.reshape(x, [x.shape[0], -1])
    moved = app.reshape(x, [-1, x.shape[0], 2])
    of_another = app.reshape(x * 2.0, [other.shape[1], -1])
    assert rows.shape == (-1, 6)
    feed = {"x": np.arange(24, dtype="float32").reshape(4, 2, 3), "other": np.ones((6, 3), "float32")}
    arrays = static.Executor(engine=engine).run(feed=feed, fetch_list=[rows, moved, of_another])
    assert [array.shape for array in arrays] == [(4, 6), (3, 4, 2), (3, 8)]
    assert arrays[0].tolist() == feed["x"].reshape(4, 6).tolist()
