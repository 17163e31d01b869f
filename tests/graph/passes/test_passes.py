"""Each pass alone: what it does to a small Program, and that it changes nothing but cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.engine.compiled.passes import PASSES as IN_ORDER
from app.errors import ShapeError
from app.graph.passes import optimise
from app.graph.passes.dead_code import dead_code
from app.graph.passes.fusion import fusion
from app.graph.passes.rewrite import with_operators
from app.graph.passes.steps import steps
from app.ops.spec import spec_of

PASSES = {
    "dead_code": dead_code,
    "steps": steps,
    "fusion": fusion,
    "optimise": lambda program, keep: optimise(program, keep, IN_ORDER),
}


def program() -> static.Program:
    return static.default_main_program()


def types(of: static.Program) -> list[str]:
    return [op.type for op in of.global_block().ops]


def run(what: static.Program, fetch: Sequence[str], scope: static.Scope | None = None, **feed: Any) -> list[np.ndarray]:
    return static.Executor(engine="reference").run(what, feed, fetch, scope=scope or static.Scope())


def parameter(name: str, *shape: int) -> Any:
    return program().global_block().create_parameter(name, shape)


def a_network(optimizer: Any) -> tuple[static.Program, list[str]]:
    """A Program in which every pass has something to do."""
    x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
    hidden = app.tanh(static.nn.fc(x, 4)) * 2.0
    app.exp(hidden)  # which nobody reads
    loss = app.mean(app.softmax_with_cross_entropy(static.nn.fc(hidden, 3), label)[0])
    optimizer.minimize(loss)
    return program(), [loss.name, hidden.name]


# --- Every pass ---


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("optimizer", [app.optimizer.SGD(0.1), app.optimizer.Momentum(0.1), app.optimizer.Adam(0.1)])
def test_a_pass_changes_nothing_but_cost(name: str, optimizer: Any):
    before, fetch = a_network(optimizer)
    copy = before.clone()
    after = PASSES[name](before, set(fetch))
    assert before.equals(copy), "a pass must leave the Program that it is given alone"
    found = []
    for what in (before, after):
        app.seed(3)
        scope = static.Scope()
        static.Executor(engine="reference").run(static.default_startup_program(), scope=scope)
        rng = np.random.default_rng(0)
        for key, value in sorted(scope.values.items()):
            scope.values[key] = (value + rng.uniform(0, 0.1, value.shape) * (value.ndim > 0)).astype(value.dtype)
        if found:
            scope.values = {k: v.copy() for k, v in found[0][2].items()}
        start = {k: v.copy() for k, v in scope.values.items()}
        feed = {"x": rng.uniform(-1, 1, (5, 4)).astype("float32"), "label": np.arange(5).reshape(5, 1) % 3}
        feed = found[0][3] if found else feed
        values = [run(what, fetch, scope, **feed) for _ in range(3)]
        found.append((values, scope.values, start, feed))
    for a, b in zip(found[0][0], found[1][0], strict=True):
        for one, other in zip(a, b, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    for key in found[0][1]:
        np.testing.assert_allclose(found[0][1][key], found[1][1][key], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", PASSES)
def test_what_has_an_effect_or_is_random_is_never_dropped_shared_or_moved(name: str):
    seen: list[Any] = []
    x = static.data("x", [2])

    def counted(a: Any) -> Any:
        seen.append(float(a[0]))
        return a + len(seen)

    def tap(a: Any) -> None:
        seen.append("tap")

    first = static.py_func(counted, x * 1.0, spec_of(x))
    static.py_func(tap, first, None)
    second = static.py_func(counted, x * 1.0, spec_of(x))
    static.py_func(counted, second, spec_of(x))  # which nobody reads
    app.uniform([2]), app.uniform([2])
    draws = [op for op in program().global_block().ops if "seed" in op.attributes]
    after = PASSES[name](program(), {second.name})
    (value,) = run(after, [second.name], x=np.ones(2, "float32"))
    assert seen == [1.0, "tap", 1.0, 4.0]
    np.testing.assert_array_equal(value, [4, 4])
    assert len([op for op in after.global_block().ops if "seed" in op.attributes]) == len(draws)


@pytest.mark.parametrize("name", PASSES)
def test_reads_before_and_after_an_update_stay_where_they_are(name: str):
    x = static.data("x", [3])
    w = parameter("w", 3)
    before = w * 2.0
    block = program().global_block()
    step = _operator("increment")
    block.append_op(step, [w], {"value": 1.0}, [w])
    after = w * 2.0
    block.append_op(step, [w], {"value": 1.0}, [w])
    last = w * 2.0 + x * before
    fetch = [before.name, after.name, last.name]
    changed = PASSES[name](program(), set(fetch))
    scope = static.Scope()
    scope.values["w"] = np.zeros(3, "float32")
    values = run(changed, fetch, scope, x=np.ones(3, "float32"))
    assert [v[0] for v in values] == [0, 2, 4]
    assert scope.values["w"][0] == 2


def _operator(name: str) -> Any:
    from app.ops.definition import REGISTRY

    return REGISTRY[name]


# --- What each does ---


def test_dead_code_drops_what_nobody_reads_and_keeps_what_is_fetched():
    x = static.data("x", [2])
    kept, _ = app.tanh(x), app.exp(app.exp(x))
    assert types(program()) == ["tanh", "exp", "exp"]
    assert types(dead_code(program(), {kept.name})) == ["tanh"]
    assert types(dead_code(program(), set())) == []


def test_the_update_is_folded_into_the_product_that_makes_the_gradient():
    x = static.data("x", [None, 4])
    w = parameter("w", 4, 3)
    loss = app.mean(app.matmul(x, w))
    app.optimizer.SGD(0.1).minimize(loss)
    assert types(program())[-2:] == ["matmul", "sgd"]
    after = steps(program(), {loss.name})
    assert str(after.global_block().ops[-1]).startswith("w = matmul_step(w, learning_rate_0, x, ")
    assert types(steps(program(), {loss.name, "w@GRAD"}))[-2:] == ["matmul", "sgd"]


def test_a_gradient_that_something_else_reads_is_not_folded_away():
    x, w = static.data("x", [None, 4]), parameter("w", 4, 3)
    app.optimizer.SGD(0.1, weight_decay=0.1).minimize(app.mean(app.matmul(x, w)))
    assert "matmul_step" not in types(steps(program(), set()))


def test_updates_are_moved_only_past_what_neither_reads_nor_changes_their_values():
    v, w = parameter("v", 2, 2), parameter("w", 2, 2)
    app.optimizer.SGD(0.1).minimize(app.mean(app.matmul(v, w)))  # each gradient is made of the other parameter
    after = steps(program(), set())
    assert "matmul_step" in types(after)
    found = []
    for what in (program(), after):
        scope = static.Scope()
        scope.values = {"v": np.eye(2, dtype="float32") * 3, "w": np.ones((2, 2), "float32")}
        run(what, [], scope)
        found.append(scope.values)
    for name in "vw":
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-6)


def test_an_update_stands_where_the_product_stood_if_nobody_misses_the_old_value():
    x, w, b = static.data("x", [None, 4]), parameter("w", 4, 3), parameter("b", 3)
    app.optimizer.SGD(0.1).minimize(app.mean(app.tanh(app.matmul(x, w) + b)))
    assert types(steps(program(), set()))[-3:] == ["sum_to", "matmul_step", "sgd"]
    y = app.sum(w)
    assert types(steps(program(), {y.name}))[-1] == "sum"


def test_a_chain_of_elementwise_operators_becomes_one():
    x = static.data("x", [None, 2])
    y = app.tanh(x * x) + 1.0
    after = fusion(program(), {y.name})
    assert types(after) == ["fill_constant", "multiply+tanh+add"]
    assert after.global_block().ops[1].outputs == (y.name,)


def test_what_is_fetched_from_inside_a_chain_is_an_output_of_it():
    x = static.data("x", [2])
    middle = app.tanh(x)
    y = app.exp(middle)
    (op,) = fusion(program(), {middle.name, y.name}).global_block().ops
    assert op.outputs == (middle.name, y.name)


def test_a_chain_is_not_joined_across_another_shape_or_a_reduction():
    x = static.data("x", [3, 2])
    y = app.tanh(app.sum(app.tanh(x), axis=0))
    assert types(fusion(program(), {y.name})) == ["tanh", "sum", "tanh"]


def test_a_chain_is_not_joined_across_an_update_of_what_it_reads():
    x, w = static.data("x", [3]), parameter("w", 3)
    before = app.exp(w)
    program().global_block().append_op(_operator("increment"), [w], {"value": 1.0}, [w])
    y = before * x
    assert types(fusion(program(), {y.name})) == ["exp", "increment", "multiply"]


def test_an_operator_that_may_not_join_stays_alone():
    x = static.data("x", [2])
    y = app.exp(app.tanh(app.exp(x)))
    after = fusion(program(), {y.name}, lambda op: op.type != "tanh")
    assert types(after) == ["exp", "tanh", "exp"]


def test_with_other_operators_the_program_given_stays_as_it_is():
    app.tanh(static.data("x", [2]))
    copy = program().clone()
    assert types(with_operators(program(), [])) == []
    assert program().equals(copy)


def test_an_error_in_a_fused_operator_names_the_member_that_raised_it():
    x, y = static.data("x", [None]), static.data("y", [None])
    z = app.add(app.tanh(x), y)
    (fused,) = fusion(program(), {z.name}).global_block().ops
    with pytest.raises(ShapeError, match=r"operator add of \(float32\[2\], float32\[3\]\)"):
        fused.definition.kernel(np.ones(2, "float32"), np.ones(3, "float32"))
