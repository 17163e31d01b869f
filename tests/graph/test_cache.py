"""What is made of a Program is made again once the Program was changed, in whichever way."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import app
from app import static
from app.graph.cache import ProgramCache
from app.graph.program import Operator, Program
from app.ops.definition import REGISTRY


def network() -> Program:
    program = static.Program()
    with static.program_guard(program, static.Program()):
        x = static.data("x", [2, 3])
        h = app.increment(x, value=0.0)
        program.global_block().create_var("kept", [2, 3], persistable=True)
        static.nn.cond(app.sum(h) > 0.0, lambda: app.increment(h, value=1.0), lambda: h * 2.0)
        app.increment(h, value=3.0)
    return program


def inside(program: Program) -> Any:
    return next(op for op in program.global_block().ops if op.bodies)


def body(program: Program) -> Any:
    return inside(program).attributes["true"]


def set_on(find: Callable[[Program], Any], **values: Any) -> Callable[[Program], Any]:
    def change(program: Program) -> None:
        for name, value in values.items():
            assert getattr(find(program), name) != value
            setattr(find(program), name, value)

    return change


def first(program: Program) -> Any:
    return program.global_block().ops[0]


def persistable(program: Program) -> Any:
    return program.global_block().var("kept")


CHANGES = {
    "an operator appended": lambda p: p.global_block().append_op(REGISTRY["exp"], [p.global_block().var("x")]),
    "an operator removed": lambda p: p.global_block().ops.pop(),
    "an operator inserted": lambda p: p.global_block().ops.insert(0, Operator(REGISTRY["exp"], ["x"], ["kept"], {})),
    "operators exchanged": lambda p: p.global_block().ops.reverse(),
    "a setting": lambda p: first(p).attributes.update(value=4.0),
    "a setting of another type": lambda p: first(p).attributes.update(value=0),
    "a setting of another sign": lambda p: first(p).attributes.update(value=-0.0),
    "inputs": set_on(first, inputs=("kept",)),
    "outputs": set_on(first, outputs=("kept",)),
    "a definition": set_on(first, definition=REGISTRY["exp"]),
    "a role": set_on(first, role="backward"),
    "persistability": set_on(persistable, persistable=False),
    "stop_gradient": set_on(persistable, stop_gradient=True),
    "what is fed": set_on(persistable, is_data=True),
    "a shape": set_on(persistable, shape=(2, 4)),
    "a type": set_on(persistable, dtype="float64"),
    "a name": lambda p: p.global_block().rename_var("kept", "other"),
    "a variable removed": lambda p: p.global_block().vars.pop("kept"),
    "a variable created": lambda p: p.global_block().create_var("other", [2]),
    "a setting inside": lambda p: body(p).block.ops[0].attributes.update(value=4.0),
    "an operator inside removed": lambda p: body(p).block.ops.pop(),
    "what a body gives": set_on(body, outputs=("kept",)),
    "what a body takes": set_on(body, inputs=("kept",)),
    "another body": lambda p: inside(p).attributes.update(true=inside(p).attributes["false"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_noticed(change: Callable[[Program], Any]):
    program, cache = network(), ProgramCache[str, object]()
    before = cache.get(program, "a", object)
    assert cache.get(program, "a", object) is before
    assert cache.get(program, "b", object) is not before
    change(program)
    after = cache.get(program, "a", object)
    assert after is not before
    assert cache.get(program, "a", object) is after


def test_equal_contents_are_no_change_and_values_are_freed_with_their_program():
    program, cache = network(), ProgramCache[str, object]()
    gone = weakref.ref(cache.get(program, "a", type("Made", (), {})))
    persistable(program).shape = (2, 3)
    first(program).attributes["value"] = float("0")
    first(program).inputs = ("x", "y")[:1]
    assert cache.get(program, "a", object) is gone()
    del program
    gc.collect()
    assert gone() is None
