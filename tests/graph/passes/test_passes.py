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
from app.graph.passes import Pass, optimise
from app.graph.passes.dead_code import dead_code
from app.graph.passes.fusion import fusion
from app.graph.passes.steps import steps
from app.graph.passes.unchanged import unchanged
from app.ops.definition import REGISTRY
from app.ops.spec import spec_of

PASSES = {
    "dead_code": dead_code,
    "steps": steps,
    "fusion": fusion,
    "unchanged": unchanged,
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


def increment(w: Any) -> None:
    """Append an operator that changes a parameter in place."""
    program().global_block().append_op(REGISTRY["increment"], [w], {"value": 1.0}, [w])


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
    feed = {
        "x": np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype("float32"),
        "label": np.arange(5).reshape(5, 1) % 3,
    }
    values = []
    for what in (before, after):
        app.seed(3)
        scope = static.Scope()
        run(static.default_startup_program(), [], scope)
        fetched = [value for _ in range(3) for value in run(what, fetch, scope, **feed)]
        values.append([*fetched, *(scope.values[key] for key in sorted(scope.values))])
    for one, other in zip(*values, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", PASSES)
def test_operators_with_effects_or_random_numbers_are_never_dropped_shared_or_moved(name: str):
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
    increment(w)
    after = w * 2.0
    increment(w)
    last = w * 2.0 + x * before
    fetch = [before.name, after.name, last.name]
    changed = PASSES[name](program(), set(fetch))
    scope = static.Scope()
    scope.values["w"] = np.zeros(3, "float32")
    values = run(changed, fetch, scope, x=np.ones(3, "float32"))
    assert [v[0] for v in values] == [0, 2, 4]
    assert scope.values["w"][0] == 2


# --- What each does ---


def test_dead_code_drops_values_that_are_neither_read_nor_fetched():
    x = static.data("x", [2])
    out, _ = app.tanh(x), app.exp(app.exp(x))
    assert types(program()) == ["tanh", "exp", "exp"]
    assert types(dead_code(program(), {out.name})) == ["tanh"]
    assert types(dead_code(program(), set())) == []


def test_an_update_is_folded_into_the_product_that_makes_its_gradient_unless_that_is_read_elsewhere():
    x = static.data("x", [None, 4])
    w = parameter("w", 4, 3)
    loss = app.mean(app.matmul(x, w))
    app.optimizer.SGD(0.1).minimize(loss)
    assert types(program())[-2:] == ["matmul", "sgd"]
    after = steps(program(), {loss.name})
    assert str(after.global_block().ops[-1]).startswith("w = matmul_step(w, learning_rate_0, x, ")
    assert types(steps(program(), {loss.name, "w@GRAD"}))[-2:] == ["matmul", "sgd"]
    app.optimizer.SGD(0.1, weight_decay=0.1).minimize(app.mean(app.matmul(x, parameter("decayed", 4, 3))))
    assert types(steps(program(), set())).count("matmul_step") == 1


def test_updates_are_moved_only_past_what_neither_reads_nor_changes_their_values():
    v, w = parameter("v", 2, 2), parameter("w", 2, 2)
    app.optimizer.SGD(0.1).minimize(app.mean(app.matmul(v, w)))  # each gradient is made of the other parameter
    after = steps(program(), set())
    assert "matmul_step" in types(after)
    values = []
    for what in (program(), after):
        scope = static.Scope()
        scope.values = {"v": np.eye(2, dtype="float32") * 3, "w": np.ones((2, 2), "float32")}
        run(what, [], scope)
        values.append(scope.values)
    for name in "vw":
        np.testing.assert_allclose(values[1][name], values[0][name], rtol=1e-6)


def test_an_update_takes_the_place_of_the_product_unless_the_old_value_is_read_later():
    x, w, b = static.data("x", [None, 4]), parameter("w", 4, 3), parameter("b", 3)
    app.optimizer.SGD(0.1).minimize(app.mean(app.tanh(app.matmul(x, w) + b)))
    assert types(steps(program(), set()))[-3:] == ["sum_to", "matmul_step", "sgd"]
    y = app.sum(w)
    assert types(steps(program(), {y.name}))[-1] == "sum"


def across_an_update(x: Any) -> Any:
    w = parameter("w", 3, 2)
    before = app.exp(w)
    increment(w)
    return before * x


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: app.tanh(x * x) + 1.0, ["fill_constant", "multiply+tanh+add"]),
        (lambda x: app.tanh(app.sum(app.tanh(x), axis=0)), ["tanh", "sum", "tanh"]),
        (across_an_update, ["exp", "increment", "multiply"]),
        (lambda x: app.sqrt(app.abs(app.sqrt(x))), ["sqrt", "abs", "sqrt"]),
    ],
    ids=["elementwise", "reduction", "update", "an operator that may not join"],
)
def test_chains_of_elementwise_operators_become_one(build: Any, expected: list[str]):
    y = build(static.data("x", [3, 2]))
    after = fusion(program(), {y.name}, lambda op: op.type != "abs")
    assert types(after) == expected
    assert after.global_block().ops[-1].outputs == (y.name,)


def test_values_that_are_fetched_from_inside_a_chain_are_its_outputs():
    x = static.data("x", [2])
    middle = app.tanh(x)
    y = app.exp(middle)
    (op,) = fusion(program(), {middle.name, y.name}).global_block().ops
    assert op.outputs == (middle.name, y.name)


def test_an_error_in_a_fused_operator_names_the_member_that_raised_it():
    x, y = static.data("x", [None]), static.data("y", [None])
    z = app.add(app.tanh(x), y)
    (fused,) = fusion(program(), {z.name}).global_block().ops
    with pytest.raises(ShapeError, match=r"operator add of \(float32\[2\], float32\[3\]\)"):
        fused.definition.kernel(np.ones(2, "float32"), np.ones(3, "float32"))


# --- Operators that hand on their inputs ---


class Doubled(app.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * 2.0


def test_the_operator_of_a_pylayer_vanishes_and_its_readers_read_what_it_handed_on():
    x = static.data("x", [3])
    y = Doubled.apply(Doubled.apply(x))
    z = app.exp(y)
    before = ["fill_constant", "multiply", "Doubled", "fill_constant", "multiply", "Doubled", "exp"]
    assert types(program()) == before
    assert types(unchanged(program(), [z.name])) == [kind for kind in before if kind != "Doubled"]
    after = unchanged(program(), [y.name, z.name])
    assert types(after)[-2:] == ["assign", "exp"]
    array = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(run(after, [y.name], x=array)[0], 4 * array)


def test_the_operator_of_a_pylayer_vanishes_inside_a_loop_too():
    x = static.data("x", [3])
    (y,) = static.nn.while_loop(lambda v: app.sum(v) < 100.0, lambda v: Doubled.apply(v), [x])
    after = optimise(program(), [y.name], IN_ORDER)
    assert "Doubled" not in [op.type for block in after.blocks for op in block.ops]
    np.testing.assert_array_equal(run(after, [y.name], x=np.ones(3, "float32"))[0], np.full(3, 64.0))


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _relu_grad(x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return np.where(y > 0, dy, 0)


@pytest.mark.parametrize("first", IN_ORDER, ids=lambda one: one.name)
def test_passes_may_run_in_any_order(first: Pass):
    x = static.data("x", [None, 4])
    h = Doubled.apply(app.tanh(static.nn.fc(x, 3)) * 2.0)
    h = static.py_func(_relu, app.tanh(h) + 1.0, spec_of(h), _relu_grad) * 3.0
    loss = app.mean(h * app.custom_op(_relu)(h))
    app.optimizer.SGD(0.1).minimize(loss)
    fetch = [loss.name, "fc_0.w_0@GRAD"]

    def results(what: static.Program) -> list[np.ndarray]:
        scope = static.Scope()
        app.seed(3)
        run(static.default_startup_program(), [], scope)
        return run(what, fetch, scope, x=np.ones((5, 4), "float32"))

    expected = results(program())
    for second in IN_ORDER:
        after = optimise(program(), set(fetch), [first, second, *IN_ORDER])
        for one, other in zip(expected, results(after), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
