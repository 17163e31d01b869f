"""Control flow in a Program: how its sub-blocks are printed, copied, compared, written and optimised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import app
from app import static
from app.engine.compiled.passes import PASSES
from app.graph import static_mode
from app.graph.passes import optimise
from app.graph.passes.dead_code import dead_code
from app.graph.serialise import program_from_data, program_to_data
from app.static.nn import cond, while_loop


@pytest.fixture(autouse=True)
def _constants_in_programs() -> Iterator[None]:
    with static_mode():
        yield


def network() -> tuple[Any, Any]:
    """A loop in a branch, and its value."""
    x = static.data("x", [-1, 2])
    x.stop_gradient = False
    twice = x * 2.0

    def loop() -> Any:
        return while_loop(lambda v: app.sum(v) < 20.0, lambda v: [v + twice], [x])[0]

    return x, cond(app.sum(x) > 0.0, loop, lambda: twice)


def values(program: Any, fetch: Any) -> list[Any]:
    feeds = [np.array([[1.0, 2.0]], "float32"), np.array([[-1.0, -2.0]], "float32")]
    return [v.tolist() for f in feeds for v in static.Executor().run(program, feed={"x": f}, fetch_list=fetch)]


def test_sub_blocks_are_printed_where_they_run():
    network()
    text = str(static.default_main_program())
    lines = [line for line in text.splitlines() if "var" not in line and line.strip()]
    assert [line for line in lines if "block" in line or "}" in line] == [
        "{ // block 0",
        "    cond.out_0 = cond(greater_than.out_0, x, multiply.out_0, true=block 1, false=block 4)",
        "        true(x, multiply.out_0) -> while_loop.out_0 { // block 1, inside block 0",
        "            while_loop.out_0, while_loop.count_0 = while_loop(x, multiply.out_0, cond=block 2, body=block 3)",
        "                cond(x_0, multiply.out_0) -> less_than.out_0 { // block 2, inside block 1",
        "                }",
        "                body(x_0, multiply.out_0) -> add.out_0 { // block 3, inside block 1",
        "                }",
        "        }",
        "        false(x, multiply.out_0) -> multiply.out_0 { // block 4, inside block 0",
        "        }",
        "}",
    ]
    program = static.default_main_program()
    op = program.global_block().ops[-1]
    assert (op.inputs[1:], op.outputs) == (("x", "multiply.out_0"), ("cond.out_0",))
    assert [(b.idx, b.parent_idx) for b in program.blocks] == [(0, -1), (1, 0), (2, 1), (3, 1), (4, 0)]
    assert program.block(4) is op.attributes["false"].block


def test_clones_written_programs_and_optimised_ones_give_the_same_values():
    x, y = network()
    (dx,) = static.gradients([app.sum(y * y)], [x])
    program, fetch = static.default_main_program(), [y.name, dx.name]
    copies = [program.clone(), program_from_data(program_to_data(program))]
    optimised = [*(each.run(program, set(fetch)) for each in PASSES), optimise(program, set(fetch), PASSES)]
    for other in (*copies, *optimised):
        assert values(other, fetch) == values(program, fetch)
    for other in copies:
        assert other.equals(program)
        other.blocks[1].ops[0].attributes["results"] = 7
        assert not other.equals(program)
    assert program.equals(program.clone())


def test_a_clone_for_test_has_no_backward_pass_and_no_dropout_in_branches():
    x = static.data("x", [-1, 2])
    y = cond(app.sum(x) > 0.0, lambda: app.nn.functional.dropout(x, 0.5), lambda: x)
    used = static.default_main_program().clone(for_test=True)
    assert values(used, [y.name])[0] == [[1.0, 2.0]]
    x.stop_gradient = False
    z = while_loop(lambda v: app.sum(v) < 20.0, lambda v: [v * v + 1.0], [x])[0]
    static.gradients([z], [x])
    after = static.default_main_program().clone(for_test=True)
    assert [op.type for op in after.global_block().ops if op.type in ("cond", "while_loop")] == ["cond", "while_loop"]
    assert values(after, [z.name]) == values(static.default_main_program(), [z])


def test_unread_results_of_control_flow_are_removed():
    x = static.data("x", [3])
    w = x * 2.0
    pair = cond(app.sum(x) > 0.0, lambda: [x + 1.0, w * 3.0], lambda: [x, w])
    i, y, _ = while_loop(
        lambda i, y, count: i < 3, lambda i, y, count: [i + 1, y + pair[0], count + i], [0, x, app.full([], 0, "int64")]
    )
    left = dead_code(static.default_main_program(), {y.name}).global_block().ops
    choice, loop = (op for op in left if op.bodies)
    assert (choice.inputs[1:], choice.outputs) == (("x",), (pair[0].name,))
    assert loop.outputs[:-1] == (i.name, y.name)
    assert [len(body.inputs) for body in loop.bodies.values()] == [3, 3]
    assert "w" not in {name for op in left for name in op.inputs}
