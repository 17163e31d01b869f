"""Convolution and pooling with images as the lanes of vectors: as machine code alone, and in Programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from machine_calls import function

import app
from app import static
from app.engine import Executor, Scope
from app.engine.compiled import convolutions, program, vector_functions
from app.engine.compiled.convolutions import Weight, Windows
from app.engine.compiled.engine import compile_program
from app.graph import names
from app.ops import REGISTRY
from app.ops.windows import Padding, Pair

NONE: Padding = ((0, 0), (0, 0))


@dataclass
class Case:
    """A convolution: how many images of which shape, the shape of the weight, and how windows lie."""

    images: tuple[int, int, int, int]
    weight: tuple[int, int, int, int]
    stride: Pair = (1, 1)
    padding: Padding = NONE
    dilation: Pair = (1, 1)
    groups: int = 1


CASES = [
    Case((1, 1, 5, 5), (1, 1, 5, 5)),
    Case((17, 3, 9, 11), (5, 3, 3, 2), padding=((1, 0), (1, 1))),
    Case((33, 4, 8, 7), (6, 2, 3, 3), stride=(2, 3), padding=((1, 1), (1, 1)), groups=2),
    Case((16, 2, 9, 9), (7, 2, 3, 3), padding=((2, 2), (2, 2)), dilation=(2, 2)),
    Case((5, 4, 6, 6), (4, 1, 3, 3), groups=4),
    Case((18, 2, 5, 7), (2, 2, 1, 1), stride=(2, 2)),
]


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.images))
def test_machine_code_agrees_with_the_operators(case: Case, lanes: int):
    random, target = np.random.default_rng(0), vector_functions.machine()
    x, w = (random.normal(size=shape).astype(np.float32) for shape in (case.images, case.weight))
    settings = {"stride": case.stride, "padding": case.padding, "dilation": case.dilation, "groups": case.groups}
    y = REGISTRY["conv2d"].kernel(x, w, **settings)
    dy = random.normal(size=y.shape).astype(np.float32)
    before = (case.padding[0][0], case.padding[1][0])
    windows = Windows(x.shape[1], x.shape[2:], y.shape[2:], w.shape[2:], case.stride, before, case.dilation)
    weight = Weight(w.shape[0], w.shape[1], case.groups, w.shape[2:])
    n, outputs = len(x), len(w)

    made = np.full_like(y, np.nan)
    function(convolutions.convolution_code("convolution", windows, weight, lanes), target)(x, w, 0, n, made)
    np.testing.assert_allclose(made, y, rtol=0, atol=1e-4)

    dx, expected = np.full_like(x, np.nan), REGISTRY["conv2d_input"].kernel(dy, w, x, **settings)
    assert convolutions.has_input_code(windows)
    run = function(convolutions.input_code("input", windows, weight, lanes), target)
    for first, last in ((0, n // 3), (n // 3, n)):
        run(dy, w, first, last, dx)
    np.testing.assert_allclose(dx, expected, rtol=0, atol=1e-4)

    expected = REGISTRY["conv2d_weight"].kernel(x, dy, w, **settings)
    run = function(convolutions.weight_code("weight", windows, weight, lanes), target)
    found = []
    for edges in ((0, outputs), (0, outputs // 2, outputs), (0, outputs // 3, outputs // 2, outputs)):
        found.append(np.full_like(w, np.nan))
        for first, last in pairwise(edges):
            run(x, dy, n, first, last, found[-1])
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-3)
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [
        ((17, 2, 8, 6), (2, 2), (2, 2), NONE),
        ((5, 3, 7, 7), (3, 3), (1, 1), NONE),
        ((16, 1, 9, 8), (3, 2), (2, 2), ((1, 1), (1, 0))),
    ],
)
def test_pooling_agrees_with_the_operators(
    shape: tuple[int, int, int, int], kernel: Pair, stride: Pair, padding: Padding, lanes: int
):
    """With equal numbers, of which the first counts, and with NaN and infinities."""
    random, target = np.random.default_rng(1), vector_functions.machine()
    x = np.round(random.normal(size=shape) * 2).astype(np.float32)
    x[random.random(shape) < 0.03] = np.nan
    x[random.random(shape) < 0.03] = -np.inf
    settings = {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": False, "output_size": None}
    y = REGISTRY["max_pool2d"].kernel(x, **settings)
    windows = Windows(shape[1], shape[2:], y.shape[2:], kernel, stride, (padding[0][0], padding[1][0]))
    made = np.full_like(y, 7)
    function(convolutions.largest_code("largest", windows, lanes), target)(x, 0, len(x), made)
    np.testing.assert_array_equal(made, y)
    if padding == NONE:
        dy, dx = random.normal(size=y.shape).astype(np.float32), np.full_like(x, 7)
        function(convolutions.scatter_code("scatter", windows, lanes), target)(dy, x, 0, len(x), dx)
        np.testing.assert_allclose(dx, REGISTRY["max_pool2d_scatter"].kernel(dy, x, **settings), rtol=0, atol=1e-5)


def test_a_lane_without_an_image_changes_nothing():
    """Numbers that are not finite spread within their image alone, and from there into the weight's gradient."""
    x, dy = np.ones((3, 1, 3, 3), np.float32), np.zeros((3, 2, 1, 1), np.float32)
    x[2], dy[:2] = np.inf, 1.0
    windows, weight = Windows(1, (3, 3), (1, 1), (3, 3), (1, 1), (0, 0)), Weight(2, 1, 1, (3, 3))
    run = function(convolutions.weight_code("weight", windows, weight, 16), vector_functions.machine())
    dw = np.empty((2, 1, 3, 3), np.float32)
    run(x[:2].copy(), dy, 2, 0, 2, dw)
    np.testing.assert_array_equal(dw, np.full((2, 1, 3, 3), 2.0))


# In Programs


def network(activation: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """A startup and a main Program, and the loss."""
    main, startup = static.Program(), static.Program()
    startup.random_seed = 1
    with names.guard(), static.program_guard(main, startup):
        image, label = static.data("image", [None, 1, 10, 10], "float32"), static.data("label", [None], "int64")
        x = static.nn.conv2d(image, 3, 3, padding=1)
        x = app.nn.functional.max_pool2d(activation(x), 2, 2)
        x = static.nn.conv2d(x, 4, 2)
        loss = app.nn.functional.cross_entropy(static.nn.fc(app.flatten(activation(x), 1), 10), label)
        app.optimizer.SGD(0.1).minimize(loss)
    return startup, main, loss


@app.custom_op(elementwise=True)
def leaky(x):
    return x if x > 0 else 0.1 * x


@leaky.backward
def _(x, y, dy):
    return dy if x > 0 else 0.1 * dy


def test_engines_agree_and_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch):
    startup, main, loss = network(leaky)
    random = np.random.default_rng(2)
    feed = {"image": random.normal(size=(21, 1, 10, 10)).astype(np.float32), "label": random.integers(0, 10, 21)}

    def trained(engine: str) -> dict[str, np.ndarray]:
        scope, executor = Scope(), Executor(engine=engine)
        executor.run(startup, scope=scope)
        losses = [executor.run(main, feed, [loss], scope=scope)[0] for _ in range(2)]
        return {"losses": np.array(losses), **scope.values}

    expected = trained("reference")
    hashes = set()
    for threads in (1, 2, 3):
        monkeypatch.setattr(program, "threads_worth", lambda lowered, n, most, threads=threads: threads)
        found = trained("compiled")
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-5, err_msg=name)
        hashes.add(hashlib.sha256(b"".join(found[name].tobytes() for name in sorted(found))).hexdigest())
    assert len(hashes) == 1
    native = compile_program(main, [loss.name])
    assert not any(step.in_python for step in native.lowered.steps)


def verdict_of(build: Callable[[Any], Any], shape: tuple[int | None, ...] = (None, 2, 8, 8)) -> str:
    """How the compiled engine runs the last operator of a network."""
    main = static.Program()
    with names.guard(), static.program_guard(main, static.Program()):
        y = build(static.data("x", list(shape), "float32"))
    native = compile_program(main, [y.name])
    return next(step.verdict for step in native.lowered.steps if y.name in step.op.outputs)


def test_what_is_not_compiled_says_why():
    pool = app.nn.functional
    assert verdict_of(lambda x: pool.max_pool2d(x, 2, 2)).startswith("compiled")
    assert "the largest number of windows is compiled" in verdict_of(lambda x: pool.avg_pool2d(x, 2, 2))
    assert "single precision" in verdict_of(lambda x: pool.max_pool2d(x.astype("float64"), 2, 2))
    wide = verdict_of(lambda x: pool.max_pool2d(x, 2, 2), (None, 64, 32, 32))
    assert "do not fit into the second-level cache" in wide
