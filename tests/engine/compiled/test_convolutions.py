"""Convolution and pooling with images as the lanes of vectors: as machine code alone, and in Programs."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from both_engines import agree_with_any_threads, compiled
from machine_calls import function, with_some_lanes

import app
from app import static
from app.engine import Executor, Scope
from app.engine.compiled import convolutions, vector_functions
from app.engine.compiled.convolutions import Weight, Windows
from app.engine.compiled.engine import compile_program
from app.engine.compiled.vectors import LINE, MOST_ON_STACK
from app.graph import names
from app.ops import REGISTRY
from app.ops.windows import Padding, Pair

pytestmark = pytest.mark.slow

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


FEW = [
    Case((17, 3, 9, 11), (5, 3, 3, 2), padding=((1, 0), (1, 1))),
    Case((33, 4, 8, 7), (6, 2, 3, 3), stride=(2, 3), padding=((1, 1), (1, 1)), groups=2),
    Case((5, 2, 9, 9), (7, 2, 3, 3), padding=((2, 2), (2, 2)), dilation=(2, 2)),
]
MORE = [Case((1, 1, 5, 5), (1, 1, 5, 5)), Case((18, 4, 5, 7), (4, 1, 1, 1), stride=(2, 2), groups=4)]


def held(images: np.ndarray, lanes: int, by_lanes: bool) -> np.ndarray:
    """Images in memory that begins a cache line; by lanes if wanted, with NaN in the lanes without an image."""
    if by_lanes:
        rest = np.full((-len(images) % lanes, *images.shape[1:]), np.nan, np.float32)
        tiles = np.concatenate([images, rest]).reshape(-1, lanes, *images.shape[1:])
        images = np.moveaxis(tiles, 1, -1)
    memory = np.empty(images.size + 16, np.float32)
    begin = -memory.ctypes.data % 64 // 4
    array = memory[begin : begin + images.size].reshape(images.shape)
    array[...] = images
    return array


def images_of(array: np.ndarray, count: int, by_lanes: bool) -> np.ndarray:
    """The inverse of `held`."""
    return np.moveaxis(array, -1, 1).reshape(-1, *array.shape[1:-1])[:count] if by_lanes else array


class Layout(NamedTuple):
    """How many images are lanes, and whether arrays hold images so."""

    lanes: int
    by_lanes: bool

    def run(
        self,
        kind: str,
        windows: Windows,
        weight: Weight | None,
        inputs: list[np.ndarray],
        like: np.ndarray,
        images: str,
    ) -> np.ndarray:
        """What a function makes, of the shape of `like`; `images` has an i for each of the inputs and the result that
        is images."""
        lanes, turned = self.lanes, [self.by_lanes and each == "i" for each in images]
        code = convolutions.CODE[kind](kind, windows, weight, lanes, tuple(turned))
        text = code.text()
        on_the_stack = [int(size) for size in re.findall(r"alloca \[(\d+) x i8\]", text)]
        on_the_heap = [int(size) - LINE for size in re.findall(r'"malloc"\(i64 (\d+)\)', text)]
        assert max(on_the_stack, default=0) <= MOST_ON_STACK
        assert text.count('call void @"free"') == len(on_the_heap)
        assert 0 <= sum(on_the_stack + on_the_heap) <= convolutions.room_of(kind, windows, weight, lanes)
        run = function(code, vector_functions.machine())
        arrays = [held(each, lanes, turn) for each, turn in zip(inputs, turned, strict=False)]
        result, n = held(np.full_like(like, 7), lanes, turned[-1]), len(inputs[0])
        for first, last in ((0, n // 3 // lanes * lanes), (n // 3 // lanes * lanes, n)):
            run(*arrays, first, last, result)
        return images_of(result, len(like), turned[-1])


@pytest.mark.parametrize(
    ("case", "by_lanes", "lanes"),
    with_some_lanes([(c, i % 2 == 0) for i, c in enumerate(FEW)], [(c, i % 2 == 0) for i, c in enumerate(MORE)]),
)
def test_machine_code_agrees_with_the_operators(case: Case, by_lanes: bool, lanes: int):
    random = np.random.default_rng(0)
    x, w = (random.normal(size=shape).astype(np.float32) for shape in (case.images, case.weight))
    settings = {"stride": case.stride, "padding": case.padding, "dilation": case.dilation, "groups": case.groups}
    y = REGISTRY["conv2d"].kernel(x, w, **settings)
    dy = random.normal(size=y.shape).astype(np.float32)
    before = (case.padding[0][0], case.padding[1][0])
    windows = Windows(x.shape[1], x.shape[2:], y.shape[2:], w.shape[2:], case.stride, before, case.dilation)
    weight = Weight(w.shape[0], w.shape[1], case.groups, w.shape[2:])
    assert convolutions.has_input_code(windows)
    tiles = np.empty((-(-len(x) // lanes), *w.shape), np.float32)
    whole = Windows(y.shape[1], y.shape[2:], y.shape[2:], (1, 1), (1, 1), (0, 0))

    run = Layout(lanes, by_lanes).run
    np.testing.assert_allclose(run("convolution", windows, weight, [x, w], y, "iwi"), y, rtol=0, atol=1e-4)
    expected = REGISTRY["conv2d_input"].kernel(dy, w, x, **settings)
    np.testing.assert_allclose(run("input", windows, weight, [dy, w], x, "iwi"), expected, rtol=0, atol=1e-4)
    expected = REGISTRY["conv2d_weight"].kernel(x, dy, w, **settings)
    sums = run("weight", windows, weight, [x, dy], tiles, "iiw")
    np.testing.assert_allclose(sums.sum(0), expected, rtol=0, atol=1e-3)
    sums = run("sums", whole, None, [dy], tiles[:, :, 0, 0, 0].copy(), "iw")
    np.testing.assert_allclose(sums.sum(0), dy.sum((0, 2, 3)), rtol=0, atol=1e-3)


POOLS = [
    ((17, 2, 8, 6), (2, 2), (2, 2), NONE),
    ((5, 3, 7, 7), (3, 3), (1, 1), NONE),
    ((16, 1, 9, 8), (3, 2), (2, 2), ((1, 1), (1, 0))),
]
"""Shapes of images, kernels, strides and paddings."""
POOL_WITH_GAPS = (9, 2, 7, 8), (2, 2), (3, 2), NONE


@pytest.mark.parametrize(
    ("pool", "by_lanes", "lanes"),
    with_some_lanes([(pool, i % 2 == 0) for i, pool in enumerate(POOLS)], [(POOL_WITH_GAPS, True)]),
)
def test_pooling_agrees_with_the_operators(pool: tuple[Any, Pair, Pair, Padding], by_lanes: bool, lanes: int):
    """With equal numbers, of which the first counts, and with NaN and infinities."""
    (shape, kernel, stride, padding), run = pool, Layout(lanes, by_lanes).run
    random = np.random.default_rng(1)
    x = np.round(random.normal(size=shape) * 2).astype(np.float32)
    x[random.random(shape) < 0.03] = np.nan
    x[random.random(shape) < 0.03] = -np.inf
    settings = {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": False}
    y = REGISTRY["max_pool2d"].kernel(x, **settings)
    windows = Windows(shape[1], shape[2:], y.shape[2:], kernel, stride, (padding[0][0], padding[1][0]))
    np.testing.assert_array_equal(run("largest", windows, None, [x], y, "ii"), y)
    if padding == NONE:
        dy = random.normal(size=y.shape).astype(np.float32)
        expected = REGISTRY["max_pool2d_scatter"].kernel(dy, x, **settings)
        np.testing.assert_allclose(run("scatter", windows, None, [dy, x], x, "iii"), expected, rtol=0, atol=1e-5)


# In Programs


def network(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """A startup and a main Program, and the loss."""
    main, startup = static.Program(), static.Program()
    startup.random_seed = 1
    with names.guard(), static.program_guard(main, startup):
        x = static.nn.conv2d(static.data("image", [None, 1, 10, 10], "float32"), 3, 3, padding=1)
        x = app.nn.functional.max_pool2d(first(x), 2, 2)
        loss = app.mean(static.nn.fc(app.flatten(second(static.nn.conv2d(x, 4, 2)), 1), 2))
        app.optimizer.SGD(0.1).minimize(loss)
    return startup, main, loss


@app.custom_op(elementwise=True)
def picky(x):
    if x == 0:
        raise ValueError("zero is in no image")
    return x if x > 0 else 0.1 * x


@picky.backward
def _(x, y, dy):
    return dy if x > 0 else 0.1 * dy


def test_engines_agree_and_threads_change_no_bit():
    startup, main, loss = network(picky, picky)
    random = np.random.default_rng(2)
    feed = {"image": random.normal(size=(53, 1, 10, 10)).astype(np.float32)}

    def trained(engine: str) -> dict[str, np.ndarray]:
        scope, executor = Scope(), Executor(engine=engine)
        executor.run(startup, scope=scope)
        losses = [executor.run(main, feed, [loss], scope=scope)[0] for _ in range(2)]
        return {"losses": np.array(losses), **scope.values}

    agree_with_any_threads(trained, atol=1e-5)
    native = compile_program(main, [loss.name])
    assert not any(step.in_python for step in native.lowered.steps)
    assert "conv2d.out_0" in native.lowered.by_lanes


def test_images_lie_by_lanes_only_where_every_step_can_read_them_so():
    def by_lanes(between: Callable[[Any], Any]) -> set[str]:
        main = static.Program()
        with names.guard(), static.program_guard(main, static.Program()):
            x = between(static.nn.conv2d(static.data("x", [None, 1, 8, 8], "float32"), 2, 3))
            y = app.nn.functional.max_pool2d(x, 2, 2)
        native = compile_program(main, [y.name])
        return {name.partition(".")[0] for name in native.lowered.by_lanes}

    assert by_lanes(lambda x: app.nn.functional.relu(x) * 2.0) == {"conv2d", "multiply"}
    rows = np.linspace(0, 1, 6, dtype=np.float32)
    for other in (lambda x: x * rows, lambda x: x - app.mean(x), lambda x: app.transpose(x, [0, 1, 3, 2])):
        assert by_lanes(other) == set()


def verdict_of(build: Callable[[Any], Any], shape: tuple[int | None, ...] = (None, 2, 8, 8)) -> str:
    """How the compiled engine runs the last operator of a network."""
    main = static.Program()
    with names.guard(), static.program_guard(main, static.Program()):
        y = build(static.data("x", list(shape), "float32"))
    native = compile_program(main, [y.name])
    return next(step.verdict for step in native.lowered.steps if y.name in step.op.outputs)


@pytest.mark.parametrize("changes", [False, True])
def test_a_bias_that_changes_before_its_last_use_is_copied(changes: bool):
    x, bias = static.data("x", [None, 2, 8, 8], "float32"), static.create_parameter([2], "float32")
    shaped = app.reshape(bias, [1, 2, 1, 1])
    if changes:
        app.assign(bias * 2.0, bias)
    native = compile_program(static.default_main_program(), [(x + shaped).name])
    assert (native.lowered.root(shaped.name) == bias.name) is not changes


def test_large_images_fit_a_thread_with_a_small_stack():
    """Threads have 2 MiB where the stack of a process is unlimited, as under Slurm."""
    x = static.data("x", [None, 3, 96, 96])
    weight = static.create_parameter([2, 3, 3, 3], "float32")
    fetch, feed = [app.nn.functional.conv2d(x, weight, padding=1)], {"x": np.ones((17, 3, 96, 96), "float32")}
    scope = static.Scope()
    scope.values[weight.name] = np.ones((2, 3, 3, 3), "float32")
    executor, results = Executor(engine="compiled"), []
    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=lambda: results.append(executor.run(x.program, feed, fetch, scope=scope)[0]))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert "images at once" in compiled(*fetch).lowered.steps[-1].verdict
    assert results[0][:, :, 1:-1, 1:-1].min() == results[0].max() == 27


def test_explain_gives_the_reason_for_not_compiling_a_layer():
    pool = app.nn.functional
    assert verdict_of(lambda x: pool.max_pool2d(x, 2, 2)).startswith("compiled")
    assert "no compiled form" in verdict_of(lambda x: pool.avg_pool2d(x, 2, 2))
    assert "single precision" in verdict_of(lambda x: pool.max_pool2d(x.astype("float64"), 2, 2))
    wide = verdict_of(lambda x: pool.max_pool2d(x, 2, 2), (None, 64, 32, 32))
    assert "take more than 4 MiB" in wide
