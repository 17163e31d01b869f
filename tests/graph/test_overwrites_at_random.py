"""Random Programs that write over values, in branches and loops too: gradients are those of eager code, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import InPlaceError
from app.graph import names

SIZE = 3
ONE = {
    "exp": lambda x: app.exp(x * 0.3),
    "tanh": app.tanh,
    "square": lambda x: app.square(x) * 0.5,
    "sigmoid": app.nn.functional.sigmoid,
    "sin": app.sin,
    "shift": lambda x: x + 0.5,
    "turned": lambda x: app.reshape(app.reshape(x, [SIZE, 1]), [SIZE]),
    "constant": lambda x: app.full([SIZE], 0.7, "float64"),
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "subtract": lambda x, y: x - y,
    "maximum": app.maximum,
}
Step = tuple[Any, ...]


def steps_of(random: np.random.Generator, count: int, deepest: int = 2, depth: int = 0) -> list[Step]:
    """What a Program does: each step computes a new value from known ones, or writes one over a known one."""
    steps: list[Step] = []
    for _ in range(int(random.integers(2, 5 if depth else 9))):
        kind = random.choice(["new", "write", "increment", "twice", "cond", "while"], p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
        if kind in ("cond", "while") and depth < deepest:
            inner = [steps_of(random, count, deepest, depth + 1) for _ in range(2 if kind == "cond" else 1)]
            steps.append((kind, bool(random.integers(2)) if kind == "cond" else int(random.integers(0, 4)), *inner))
            continue
        operator = str(random.choice([*ONE, *TWO]))
        places = [int(n) for n in random.integers(0, count, 3)]
        if kind == "new" and depth == 0:
            steps.append(("new", operator, *places))
            count += 1
        elif kind == "increment":
            steps.append(("increment", "", *places))
        else:
            steps.append(("write", operator, *places))
    return steps


def computed(operator: str, values: list[Any], x: int, y: int) -> Any:
    return ONE[operator](values[x]) if operator in ONE else TWO[operator](values[x], values[y])


def in_program(steps: list[Step], values: list[Any], flag: Any) -> None:
    for kind, what, *rest in steps:
        if kind == "cond":
            sides = [lambda inner=inner: in_program(inner, values, flag) for inner in rest]
            static.nn.cond(flag if what else app.logical_not(flag), *sides)
        elif kind == "while":

            def body(i: Any, inner: list[Step] = rest[0]) -> list[Any]:
                in_program(inner, values, flag)
                return [i + 1]

            static.nn.while_loop(lambda i, times=what: i < times, body, [app.full([], 0, "int64")])
        else:
            x, y, target = rest
            new = app.increment(values[x], value=0.25) if kind == "increment" else computed(what, values, x, y)
            if kind == "new":
                values.append(new)
            else:
                app.assign(new, output=values[x if kind == "increment" else target])


def eagerly(steps: list[Step], values: list[Any], flag: bool) -> None:
    """The same on a list of values that are replaced, so that nothing is ever written over."""
    for kind, what, *rest in steps:
        if kind == "cond":
            eagerly(rest[0] if what is flag else rest[1], values, flag)
        elif kind == "while":
            for _ in range(what):
                eagerly(rest[0], values, flag)
        else:
            x, y, target = rest
            new = app.increment(values[x], value=0.25) if kind == "increment" else computed(what, values, x, y)
            if kind == "new":
                values.append(new)
            else:
                values[x if kind == "increment" else target] = new


def check(seed: int, engine: str = "reference", deepest: int = 2) -> None:
    """Gradients, values and those of a clone are what eager code gives; a parameter's change may be refused.

    Branches and loops stand `deepest` deep in each other.
    """
    random = np.random.default_rng(seed)
    steps = steps_of(random, 3, deepest)
    numbers, weights, flag = random.uniform(-1, 1, SIZE), random.uniform(-1, 1, SIZE), bool(random.integers(2))
    updated = random.random() < 0.3
    x, w = (app.to_tensor(a, stop_gradient=False) for a in (numbers, weights))
    start = [x * 1.0, w * x, app.full([SIZE], 0.3, "float64")]
    before = list(start)
    eagerly(steps, start, flag)
    terms = [app.sum(v * (i + 1.0)) for i, v in enumerate([*start, *before])]
    loss = app.add_n(terms)
    gradients = app.grad([loss], [x, w], allow_unused=True)
    expected = [loss.numpy(), *(np.zeros(SIZE) if g is None else g.numpy() for g in gradients)]
    main, startup = static.Program(), static.Program()
    with names.guard(), static.program_guard(main, startup), static.scope_guard(static.Scope()):
        app.enable_static()
        try:
            actual = _in_static_mode(steps, weights, updated, engine, {"x": numbers, "flag": np.array(flag)})
        finally:
            app.disable_static()
    for one, other in zip(actual, expected, strict=True) if actual else ():
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=f"seed {seed}: {steps}\n{main}")
    assert actual or updated, f"seed {seed}: refused without need"


def _in_static_mode(steps: list[Step], weights: np.ndarray, updated: bool, engine: str, feed: Any) -> list[Any]:
    main, executor = static.default_main_program(), static.Executor(engine=engine)
    x, flag = static.data("x", [SIZE], "float64"), static.data("flag", [], "bool")
    x.stop_gradient = False
    w = static.create_parameter([SIZE], "float64", default_initializer=app.nn.initializer.Assign(weights))
    start = [x * 1.0, w * x, app.full([SIZE], 0.3, "float64")]
    before = [app.assign(v) for v in start]
    in_program(steps, start, flag)
    loss = app.add_n([app.sum(v * (i + 1.0)) for i, v in enumerate([*start, *before])])
    if updated:  # after which nothing that needs the parameter as it was can have a gradient
        app.assign(w * 2.0, output=w)
    try:
        gradients = static.gradients([loss], [x, w])
    except InPlaceError as error:
        if updated and f"needs the value that {w.name} had there" in str(error):
            return []
        raise
    executor.run(static.default_startup_program())
    fetch = [loss, *(g for g in gradients if g is not None)]
    fetched = iter(executor.run(main.clone(), feed, [v.name for v in fetch]))
    value = next(fetched)
    return [value, *(np.zeros(SIZE) if g is None else next(fetched) for g in gradients)]


def test_gradients_after_overwrites_are_right_or_an_error():
    for seed in range(25):
        check(seed)


@pytest.mark.soak
def test_gradients_after_overwrites_are_right_in_the_compiled_engine():
    check(1, "compiled", deepest=0)
