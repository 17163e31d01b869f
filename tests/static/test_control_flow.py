"""`cond` and `while_loop` of Variables and of Tensors, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.errors import DtypeError, OperatorError, ProgramError, ShapeError
from app.static.nn import cond, while_loop


@pytest.fixture
def x() -> Any:
    with app.graph.static_mode():
        yield static.data("x", [-1, 3])


def run(fetch: Any, *rows: list[float], engine: str = "reference") -> list[np.ndarray]:
    return static.Executor(engine=engine).run(feed={"x": np.array(rows, "float32")}, fetch_list=fetch)


UP, DOWN = [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]


def test_cond_runs_one_branch(x: Any):
    seen: list[str] = []
    y = cond(
        app.sum(x) > 0.0,
        lambda: (static.py_func(lambda v: seen.append("true"), x, None), x * 2.0)[1],
        lambda: (static.py_func(lambda v: seen.append("false"), x, None), x - 1.0)[1],
    )
    assert run(y, UP)[0].tolist() == [[2.0, 4.0, 6.0]]
    assert run(y, DOWN)[0].tolist() == [[-2.0, -3.0, -4.0]]
    assert seen == ["true", "false"]
    assert cond(app.sum(x) > 0.0, None, lambda: None) is None


def structured(x: Any) -> list[Any]:
    outputs = cond(app.sum(x) > 0.0, lambda: {"a": (x, [x * 2.0]), "b": None}, lambda: {"a": (x * 3.0, [x]), "b": None})
    assert outputs["b"] is None
    a, (b,) = outputs["a"]
    return [a, b]


def nested(x: Any) -> list[Any]:
    start = [{"a": x, "b": [x]}, 0]
    nest, i = while_loop(lambda v, i: i < 2, lambda v, i: ({"a": v["a"] + v["b"][0], "b": v["b"]}, i + 1), start)
    return [nest["a"], i]


def at_once(x: Any) -> list[Any]:
    start = [app.full([], 0, "int64"), x * 1.0, x * 1.0]
    return while_loop(lambda i, a, b: i < 3, lambda i, a, b: [i + 1, b, a + b], start)


def until_false(x: Any) -> list[Any]:
    return while_loop(lambda y, go: go, lambda y, go: [y + 1.0, False], [x, app.full([], True, "bool")])


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (structured, {2.0: [2, 4], -2.0: [-6, -2]}),
        (lambda x: [cond(app.sum(x) > 0.0, lambda: 1.5, lambda: -1.5)], {1.0: [1.5], -1.0: [-1.5]}),
        (at_once, {1.0: [3, 3, 5]}),
        (nested, {1.0: [3, 2]}),
        (until_false, {1.0: [2, False]}),
    ],
    ids=["structure", "numbers", "loop variables", "nested loop variables", "number in a loop"],
)
def test_values_of_choices_and_loops(x: Any, build: Any, expected: dict[float, list[float]]):
    """The first element of each value, for rows that begin with a number."""
    fetch = build(x)
    assert {number: [v.flat[0] for v in run(fetch, [number, 0.0, 0.0])] for number in expected} == expected


def test_names_of_the_user_may_look_generated(x: Any):
    other = static.data("x_0", [-1, 3])
    (y,) = while_loop(lambda y: app.sum(y) < 100.0, lambda y: [y + other], [x])
    feed = {"x": np.array([UP], "float32"), "x_0": np.array([[0.0, 1.0, 100.0]], "float32")}
    assert static.Executor().run(feed=feed, fetch_list=[y])[0].tolist() == [[1.0, 3.0, 103.0]]


def test_a_variable_made_in_a_body_cannot_be_hidden_by_one_of_the_loop(x: Any):
    with pytest.raises(ProgramError, match="has a variable x_0 of its own; use another name"):
        while_loop(lambda y: app.sum(y) < 100.0, lambda y: [y + static.data("x_0", [-1, 3])], [x])


def test_a_declared_unknown_size_may_change(x: Any):
    (y,) = while_loop(lambda y: app.sum(y) < 20.0, lambda y: [app.concat([y, y], axis=0)], [x])
    for engine in ("reference", "compiled"):
        assert run(y, UP, engine=engine)[0].shape == (4, 3)


# Tensors


def test_choices_and_loops_of_tensors_run_at_once():
    t = app.to_tensor([1.0, 2.0], stop_gradient=False)
    y = cond(t.sum() > 0.0, lambda: t * t, lambda: t)
    i, z = while_loop(lambda i, z: i < 2, lambda i, z: [i + 1, z * y], [app.to_tensor(0), t])
    z.sum().backward()
    assert (i.item(), z.numpy().tolist(), t.grad.numpy().tolist()) == (2, [1.0, 32.0], [5.0, 80.0])
    assert cond(True, lambda: 3, lambda: 4) == 3
    with pytest.raises(ShapeError, match=r"a single boolean, found shape \[2\]"):
        cond(t > 0.0, lambda: 1, lambda: 2)


def test_tensors_and_variables_do_not_mix(x: Any):
    with pytest.raises(OperatorError, match="a Tensor was mixed with Variables"):
        cond(app.sum(x) > 0.0, lambda: app.to_tensor(1.0), lambda: app.sum(x))


# What is refused, by name, place and remedy

HERE = r"\(test_control_flow\.py:\d+\)"
REFUSED = {
    "a condition that changes a value": (
        lambda x: while_loop(lambda i: [app.assign(x * 2.0, output=x), i < 2][1], lambda i: i + 1, [0]),
        ProgramError,
        "the condition of a loop changes x; change it in the loop's body",
    ),
    "no function of a loop": (
        lambda x: static.nn.while_loop(True, lambda i: i, [x]),
        OperatorError,
        "cond and body must be functions, found True",
    ),
    "another structure": (
        lambda x: cond(app.sum(x) > 0.0, lambda: [x, x], lambda: x),
        OperatorError,
        rf"operator cond: true_fn {HERE} and false_fn {HERE} must have one structure; found \(x, x\) and x",
    ),
    "nothing in one branch": (
        lambda x: cond(app.sum(x) > 0.0, lambda: x, lambda: None),
        OperatorError,
        "must have one structure; found x and None",
    ),
    "another shape": (
        lambda x: cond(app.sum(x) > 0.0, lambda: x, lambda: app.sum(x)),
        ShapeError,
        rf"operator cond: true_fn {HERE}.*the value has shape \[-1, 3\] and \[\]; reshape",
    ),
    "another type": (
        lambda x: cond(app.sum(x) > 0.0, lambda: [x, x], lambda: [x, x > 0.0], return_names=["y", "z"]),
        DtypeError,
        "'z' is float32 and bool; use .astype",
    ),
    "a number for a condition": (
        lambda x: cond(app.sum(x), lambda: x, lambda: x),
        DtypeError,
        rf"operator cond {HERE}: its condition sum.out_0 must be boolean, found float32; use a comparison",
    ),
    "many conditions": (
        lambda x: cond(app.sum(x, axis=0) > 0.0, lambda: x, lambda: x),
        ShapeError,
        r"must be a single boolean, found shape \[3\]; reduce it with opsmith.all or opsmith.any",
    ),
    "no function": (lambda x: cond(app.sum(x) > 0.0, x, x), OperatorError, "true_fn must be a function"),
    "fewer loop variables": (
        lambda x: while_loop(lambda i, y: i < 2, lambda i, y: [i + 1], [0, x]),
        OperatorError,
        rf"operator while_loop \(condition {HERE}, body {HERE}\): body must return one value for each .* it returned 1",
    ),
    "a loop variable of another shape": (
        lambda x: while_loop(lambda y: app.sum(y) < 2.0, lambda y: [app.sum(y)], [x]),
        ShapeError,
        r"a loop variable keeps its kind, but value 0 has shape \[-1, 3\] and \[\]; reshape or pad",
    ),
    "a loop variable of another type": (
        lambda x: while_loop(lambda y: app.sum(y) < 2.0, lambda y: [y.astype("float64")], [x]),
        DtypeError,
        "value 0 is float32 and float64",
    ),
    "a loop over a number": (
        lambda x: while_loop(lambda y: app.sum(y), lambda y: [y], [x]),
        DtypeError,
        "must be boolean, found float32",
    ),
    "no loop variables": (
        lambda x: while_loop(lambda: True, list, []),
        OperatorError,
        "loop_vars must be a list of at least one value",
    ),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_wrong_arguments_are_errors(x: Any, wrong: str):
    build, kind, message = REFUSED[wrong]
    with pytest.raises(kind, match=message):
        build(x)
    assert static.default_main_program().current_block().idx == 0


def test_a_value_of_a_branch_cannot_be_read_outside(x: Any):
    leaked = []
    cond(app.sum(x) > 0.0, lambda: leaked.append(x * 2.0), lambda: None)
    with pytest.raises(ProgramError, match=r"cannot read multiply.out_0 here: .* inside block 1, .* return it"):
        leaked[0] + 1.0
    with pytest.raises(ProgramError, match=r"block 3 reads multiply.out_0, which is computed in another branch"):
        cond(app.sum(x) > 0.0, lambda: leaked[0], lambda: x)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_condition_of_several_values_is_an_error_at_run_time(x: Any, engine: str):
    y = cond(app.sum(x, axis=1) > 0.0, lambda: x, lambda: -x)
    assert run(y, DOWN)[0].tolist() == [UP]
    with pytest.raises(ShapeError, match=r"operator cond .*a single boolean, found shape \[2\]"):
        run(y, UP, DOWN, engine=engine)
