"""Random functions, some of which write into their inputs: an error, or the right result and unchanged inputs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, vectorize

import app
from app import static
from app.errors import ReadOnlyError
from app.ops.spec import spec_of

pytestmark = pytest.mark.slow

SEEDS = [1, 4, 8, 14, 18, 22, 25]
"""Numba, which takes long, compiles one of these functions; `make soak` takes many."""

SHAPE = (3, 4)

VIEWS = [
    "x", "x.T", "x.ravel()", "x.reshape(4, 3)", "x.reshape(-1)", "x[1:]", "x[:, ::2]", "x[::-1]", "x[0]", "x[...]",
    "np.asarray(x)", "np.atleast_2d(x)", "np.transpose(x)", "np.expand_dims(x, 0)", "np.ravel(x)",
    "np.ascontiguousarray(x)", "(x if x[0, 0] > 0 else x.copy())", "(x.copy() if x[0, 0] > 0 else x)", "[x, x][1]",
    "(x, x)[0]", "same(x)",
]  # fmt: skip
COPIES = ["x.copy()", "x * 1", "np.copy(x)", "np.zeros_like(x)", "x.astype(np.float64)", "x[x > -99]", "np.exp(x)"]
WRITES = [
    "v[0] = 7", "v[:] = 7", "v += 1", "v *= v", "v[1:] -= 2", "v.fill(7)", "v.flat[0] = 7", "np.add(v, 1, v)",
    "np.sin(v, v)", "v.ravel()[:1] = 7", "overwrites(v)", "v.reshape(-1).sort()", "np.random.shuffle(v)",
    "np.copyto(v, 7)", "np.put(v, [0], 7)", "v.reshape(-1)[v.size - 1] = 7",
    "if v.size > 2: v[0] = 7", "for i in range(len(v)): v[i] = i",
]  # fmt: skip
READS = ["w = v + 1", "w = np.sum(v)", "w = same(v)", "for i in range(len(v)): w = v[i]", "w = kernel_of_one(v)"]
HOOKS = ["custom_op", "py_func", "backward"]
ENGINES = ["", "reference", "compiled"]
"""No engine: eagerly."""


@njit
def same(z: Any) -> Any:
    return z


@njit
def overwrites(z: Any) -> None:
    z[0] = 7


@vectorize
def kernel_of_one(z: Any) -> Any:
    return z + 1


def function_of(seed: int) -> tuple[Callable[..., Any], str]:
    """A function of two arrays of one shape, and its source."""
    chosen = random.Random(seed)
    lines = ["def f(x, y):", "    kept = x * 2 + y"]
    for _ in range(chosen.randint(1, 2)):
        source = chosen.choice(VIEWS if chosen.random() < 0.7 else COPIES)
        lines.append("    v = " + re.sub(r"\bx\b", chosen.choice("xy"), source))
        lines.append(f"    {chosen.choice(WRITES if chosen.random() < 0.6 else READS)}")
    lines.append(f"    return {chosen.choice(['kept', 'kept + x', 'x', 'x * 1', 'kept - y'])}")
    text = "\n".join(lines)
    around = {"np": np, "same": same, "overwrites": overwrites, "kernel_of_one": kernel_of_one}
    exec(text, around)
    return around["f"], text


def inputs(seed: int) -> list[np.ndarray]:
    drawn = np.random.default_rng(seed)
    return [drawn.uniform(-1, 1, SHAPE) for _ in range(2)]


def expected(function: Callable[..., Any], seed: int) -> np.ndarray | None:
    """What the function returns on arrays of its own; None where it raises."""
    try:
        np.random.seed(0)
        return np.array(function(*inputs(seed)))
    except Exception:  # some of them make no sense, as a sort of what does not lie side by side
        return None


def run(hook: str, function: Callable[..., Any], engine: str, seed: int) -> list[np.ndarray]:
    """What an operator of the function makes of two activations, and these, as another operator sees them later."""
    arrays = inputs(seed)
    spec = spec_of(arrays[0])
    values = [static.data(n, SHAPE, "float64") for n in "ab"] if engine else [app.to_tensor(a) for a in arrays]
    for value in values:
        value.stop_gradient = False
    x, y = (value + 0 for value in values)
    if hook == "backward":
        wrap = njit if hasattr(function, "py_func") else lambda plain: plain
        out = static.py_func(np.add, [x, y], spec, wrap(lambda x, y, s, ds: (function(x, y), ds)))
        result = app.grad([app.sum(out)], [x])[0] if not engine else static.gradients([app.sum(out)], [x])[0]
    elif hook == "py_func":
        result = static.py_func(function, [x, y], spec)
    else:
        result = app.custom_op(function, infer=lambda x, y: x)(x, y)
    fetched = [result, x * 1, y * 1]
    if not engine:
        return [t.numpy() for t in fetched]
    feed = dict(zip("ab", arrays, strict=True))
    return [np.array(a) for a in static.Executor(engine=engine).run(feed=feed, fetch_list=fetched)]


def check(seed: int) -> int:
    """One function under one hook: eagerly and with either engine; one of Numba's, which takes long, in one way.

    Gives how often it was refused or was right.
    """
    chosen = random.Random(-seed - 1)
    plain, text = function_of(seed)
    native = chosen.random() < 0.6
    function = njit(plain) if native else plain
    hook = chosen.choice(HOOKS)
    right = expected(function, seed)
    if right is None or right.shape != SHAPE:
        return 0
    engines = chosen.sample(ENGINES, 1) if native else ENGINES
    for engine in engines:
        with static.program_guard(static.Program(), static.Program()):
            (app.enable_static if engine else app.disable_static)()
            try:
                np.random.seed(0)
                result, x, y = run(hook, function, engine, seed)
            except ReadOnlyError:
                continue
            finally:
                app.disable_static()
        np.testing.assert_allclose(result, right, rtol=1e-12, err_msg=f"{hook}, {engine or 'eager'}:\n{text}")
        for array, before in zip((x, y), inputs(seed), strict=True):
            np.testing.assert_array_equal(array, before, err_msg=f"{hook}, {engine or 'eager'}:\n{text}")
    return len(engines)


def test_random_functions_leave_their_inputs_unchanged():
    assert sum(check(seed) for seed in SEEDS) > len(SEEDS)
