"""What no pass may do, and what each alone does to a small Program."""

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


# --- Every pass ---


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


# --- What each does ---


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


def test_an_error_in_a_fused_operator_names_the_member_that_raised_it():
    x, y = static.data("x", [None]), static.data("y", [None])
    z = app.add(app.tanh(x), y)
    (fused,) = fusion(program(), {z.name}).global_block().ops
    with pytest.raises(ShapeError, match=r"operator add of \(float32\[2\], float32\[3\]\)"):
        fused.definition.kernel(np.ones(2, "float32"), np.ones(3, "float32"))
