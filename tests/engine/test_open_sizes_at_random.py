"""Random Programs over open sizes, sliced, reshaped and reduced: the compiled engine gives what the reference does.

Sizes that agree in one batch and differ in the next are what these are about: `x[0:1]`, `x[:3]`, a batch of 1, of 0.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.engine.compiled.engine import CompiledEngine
from app.engine.reference import ReferenceEngine
from app.errors import AppError
from app.graph import names

sys.path.insert(0, str(Path(__file__).parent / "compiled"))

from plain_source import PlainEngine

ROWS = (5, 0, 1, 2, 7)
COLUMNS = 3

ONE: dict[str, Callable[[Any], Any]] = {
    "tanh": app.tanh,
    "square": app.square,
    "first": lambda x: x[0:1],
    "first three": lambda x: x[:3],
    "all but one": lambda x: x[1:],
    "last": lambda x: x[-1:],
    "every other": lambda x: x[::2],
    "first hundred": lambda x: x[:100],
    "one of them": lambda x: x[-1],
    "in a column": lambda x: app.reshape(x, [-1, 1]),
    "flat": lambda x: app.reshape(x, [-1]),
    "in rows": lambda x: app.reshape(x, [-1, COLUMNS]),
    "in one row": lambda x: app.reshape(x, [1, -1]),
    "new axis": lambda x: app.unsqueeze(x, axis=1),
    "squeeze": lambda x: app.squeeze(x, axis=-1),
    "transpose": app.transpose,
    "sum": app.sum,
    "sum of rows": lambda x: app.sum(x, axis=0, keepdim=True),
    "mean of rows": lambda x: app.mean(x, axis=0),
    "mean of columns": lambda x: app.mean(x, axis=-1, keepdim=True),
    "largest": lambda x: app.max(x, axis=0, keepdim=True),
    "smallest": lambda x: app.min(x, axis=-1),
    "softmax": lambda x: app.nn.functional.softmax(x, axis=0),
    "norm": lambda x: app.norm(x, axis=0, keepdim=True),
    "two rows": lambda x: app.gather(x, np.array([0, -1])),
    "halves": lambda x: app.split(x, 2, axis=0)[0],
    "doubled": lambda x: app.concat([x, x * 0.5], axis=0),
    "one more": lambda x: app.concat([x, x[0:1]], axis=0),
    "stacked": lambda x: app.stack([x, app.tanh(x)], axis=0),
    "ones": lambda x: app.ones_like(x) + x,
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: app.tanh(x) * y,
    "where": lambda x, y: app.where(x > y, x, y * 0.5),
    "maximum": app.maximum,
    "matmul": lambda x, y: app.matmul(app.tanh(x), app.tanh(y), transpose_y=True),
    "expand": app.expand_as,
    "concat": lambda x, y: app.concat([x, y], axis=0),
}


def program(seed: int) -> tuple[static.Program, list[str]]:
    """A random Program over x [None, 3], v [None] and w [None, 1], and what is fetched of it."""
    draw = random.Random(seed)
    main = static.Program()
    with names.guard(), static.program_guard(main, static.Program()):
        data = [static.data(name, [None, *rest]) for name, rest in (("x", [COLUMNS]), ("v", []), ("w", [1]))]
        for variable in data:
            variable.stop_gradient = False
        values, block = list(data), main.global_block()
        for _ in range(draw.randint(2, 6)):
            step: Any = draw.choice(list(ONE.values()) * 2 + list(TWO.values()) * 4)
            count = 2 if step in TWO.values() else 1
            before = len(block.ops)
            try:
                values.append(step(*(values[-1 - min(draw.randrange(len(values)), 3)] for _ in range(count))))
            except AppError:  # these values do not go together
                del block.ops[before:]
        last = values[-1]
        loss = app.sum(app.tanh(last) * last) + app.mean(app.tanh(values[-2]))
        gradients = [g.name for g in static.gradients(loss, data) if g is not None]
        return main, [loss.name, last.name, values[-2].name, *gradients]


def outcome(engine: Any, main: static.Program, fetch: list[str], rows: int) -> Any:
    """What an engine fetches for a batch; or that it refuses to."""
    numbers = np.random.default_rng(rows)
    shapes = {"x": (rows, COLUMNS), "v": (rows,), "w": (rows, 1)}
    feed = {name: numbers.uniform(-1, 1, shape).astype("float32") for name, shape in shapes.items()}
    executor = static.Executor()
    executor._engine = engine
    try:
        return executor.run(main, feed, fetch, scope=static.Scope())
    except AppError:
        return None


def agree(seed: int, engine: Any) -> bool:
    """A Program's source, run with batches of several sizes, gives what the reference engine gives; False if an
    operator refuses every size."""
    main, fetch = program(seed)
    runs = False
    for rows in ROWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, actual = (outcome(each, main, fetch, rows) for each in (ReferenceEngine(), engine))
        where = f"seed {seed}, {rows} rows of\n{main}"
        if expected is None:
            continue  # an operator refuses, which an engine that leaves out what nothing reads may never run
        assert actual is not None, where
        for name, a, b in zip(fetch, actual, expected, strict=True):
            assert a.shape == b.shape, f"{name}: {a.shape} for {b.shape}, {where}"
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4, err_msg=f"{name}, {where}")
        runs = True
    return runs


def check(seed: int) -> bool:
    return agree(seed, PlainEngine(shards=1 + seed % 2))


@pytest.mark.parametrize("seed", range(40))
def test_generated_source_run_as_python_agrees_with_the_reference_engine(seed: int):
    if not check(seed):
        pytest.skip("an operator refuses every size")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [40, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(41, 60))])
def test_compiled_code_agrees_with_the_reference_engine(seed: int):
    if not agree(seed, CompiledEngine()):
        pytest.skip("an operator refuses every size")


def test_a_program_of_two_open_sizes_runs_on_the_reference_engine():
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x, y = static.data("x", [None]), static.data("y", [None])
        out = app.sum(app.tanh(x)) + app.sum(app.tanh(y) * y)
    feed = {"x": np.ones(3, "float32"), "y": np.ones(5, "float32")}
    value = static.Executor(engine="compiled").run(main, feed, [out])[0]
    np.testing.assert_allclose(value, 8 * np.tanh(1.0), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:operator py_func")
def test_a_gradient_is_summed_to_the_shape_that_a_custom_function_returned():
    """The function declares a row for each of the batch, and returns one that is repeated."""
    results = []
    for engine in ("reference", "compiled"):
        main = static.Program()
        with names.guard(), static.program_guard(main, static.Program()):
            x = static.data("x", [None, 2])
            x.stop_gradient = False
            y = static.py_func(lambda a: a[:1], x, static.InputSpec([None, 2]), lambda a, y, dy: a * 0 + dy)
            loss = app.sum(app.tanh(y) * x)
            fetch = [loss, *static.gradients(loss, x)]
        feed = {"x": np.array([[0.5, -1], [2, 3], [-0.25, 1]], "float32")}
        results.append(static.Executor(engine=engine).run(main, feed, fetch))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
