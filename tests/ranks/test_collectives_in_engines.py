"""Engines run collective operators as any others: here of a world in which the other rank does the same as this one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from worlds import using

import app
from app.data import Batches
from app.engine import Executor, Scope
from app.graph import Program, names, static_mode
from app.ops.definition import OpDef
from app.ranks.data_parallel import data_parallel
from app.ranks.operators import average, receive_gradients, receive_parameters, send_gradients
from app.ranks.world import DistError, World

pytestmark = pytest.mark.slow

ENGINES = ["reference", "compiled"]


class Twins(World):
    """Two ranks that have the same, and what was asked of them."""

    size = 2

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def allreduce(self, buffer: np.ndarray) -> None:
        self.asked.append(("allreduce", buffer.size))
        buffer *= 2

    def reduce(self, buffer: np.ndarray) -> None:
        self.asked.append(("reduce", buffer.size))
        buffer *= 2

    def broadcast(self, buffer: np.ndarray) -> None:
        self.asked.append(("broadcast", buffer.size))


def plain(x: np.ndarray) -> np.ndarray:
    return np.tanh(x) * float("1")


def plain_grad(x: np.ndarray, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return dy * (1 - y * y)


def in_python(hidden: Any) -> Any:
    out = hidden.block.create_var("plain_out", hidden.shape, "float32")
    return app.static.py_func(plain, hidden, out, backward_func=plain_grad)


def network(activation: Any) -> tuple[Program, Program, str]:
    main, startup = Program(), Program()
    startup.random_seed = 0
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x, y = app.static.data("x", [None, 4]), app.static.data("y", [None, 1])
        loss = app.mean((activation(app.static.nn.fc(x, 5)) - y) ** 2)
        app.optimizer.Momentum(0.05).minimize(loss)
    return main, startup, loss.name


DATA = Batches(
    np.random.default_rng(0).standard_normal((22, 4), np.float32),
    np.random.default_rng(1).standard_normal((22, 1), np.float32),
    None,
    8,
)


def train(engine: str, program: Program, startup: Program, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Three epochs; gives the losses, and the weights at the end."""
    scope, executor = Scope(), Executor(engine=engine)
    executor.run(startup, scope=scope)
    scope.values["weight_of_rank.float32"] = np.array(1, "float32")
    losses = [executor.train_from_dataset(program, DATA, ["x", "y"], [loss], scope)[0] for _ in range(3)]
    return np.concatenate(losses), scope.values["fc_0.w_0"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("shape", "activation", "asked"),
    [("allreduce", app.relu, {"allreduce"}), ("pserver", in_python, {"broadcast", "reduce"})],
)
def test_twins_train_as_one_process_with_the_rows_of_one(engine: str, shape: Any, activation: Any, asked: set[str]):
    main, startup, loss = network(activation)
    world = Twins()
    here = data_parallel(main, 0, shape, loss=loss)
    with using(world):
        alone, twins = train("reference", main, startup, loss), train(engine, here, startup, loss)
    for one, twin in zip(alone, twins, strict=True):
        np.testing.assert_allclose(twin, one, rtol=1e-5)
    assert {kind for kind, _ in world.asked} == asked


def test_compiled_code_calls_collectives_unless_other_operators_are_python():
    main, _, loss = network(app.relu)
    text = data_parallel(main, 0, loss=loss).explain([loss])
    assert re.search(r"average +Python that compiled code calls", text)
    assert "def train(" in text
    assert "if call_python(shared, n):" in text
    main, _, loss = network(in_python)
    text = data_parallel(main, 0, loss=loss).explain([loss], source=False)
    assert "Python call: compiled code could call it only if all operators were compiled" in text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("error", [DistError("rank 1 of 2: its disk is full"), KeyboardInterrupt("stop")])
def test_an_exception_of_a_collective_is_raised_unchanged(engine: str, error: BaseException):
    class Broken(Twins):
        def allreduce(self, buffer: np.ndarray) -> None:
            raise error

    main, startup, loss = network(app.relu)
    with using(Broken()), pytest.raises(type(error), match=str(error)):
        train(engine, data_parallel(main, 0, loss=loss), startup, loss)


def test_a_collective_is_never_removed_moved_or_merged():
    main = Program()
    with names.guard(), app.static.program_guard(main, Program()), static_mode():
        x = app.static.data("x", [3])
        first, second = app.relu(x), app.abs(x)
    block = main.global_block()
    for value in (first, second, first):
        block.append_op(average, [value], None, [value])
    block.append_op(send_gradients, [second], None, [])
    results = []
    for engine in ENGINES:
        with using(world := Twins()):
            results += Executor(engine=engine).run(main, {"x": np.ones(3, "float32")}, [first.name], scope=Scope())
        assert world.asked == [("allreduce", 3)] * 3 + [("reduce", 3)]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


class AtRest(World):
    """Two ranks, of which the other one, the first, has zeros."""

    size = 2

    def allreduce(self, buffer: np.ndarray) -> None:
        pass

    def reduce(self, buffer: np.ndarray) -> None:
        pass

    def broadcast(self, buffer: np.ndarray) -> None:
        buffer[:] = 0


@pytest.mark.parametrize(
    ("collective", "expected"), [(average, 0.5), (receive_gradients, 0.5), (receive_parameters, 0)]
)
def test_collectives_of_arrays_return_new_arrays(collective: OpDef, expected: float):
    array = np.ones(3, "float32")
    with using(AtRest()):
        (result,) = collective([array])
    assert (result.tolist(), array.tolist()) == ([expected] * 3, [1] * 3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("collective", [average, receive_gradients])
def test_values_that_are_transposed_are_averaged_as_any_others(collective: OpDef, engine: str):
    main = Program()
    with names.guard(), app.static.program_guard(main, Program()), static_mode():
        value = app.transpose(in_python(app.static.data("x", [2, 3])), [1, 0])
    main.global_block().append_op(collective, [value], None, [value])
    array = np.arange(6, dtype="float32").reshape(2, 3)
    with using(AtRest()):
        (result,) = Executor(engine=engine).run(main, {"x": array}, [value.name], scope=Scope())
    np.testing.assert_allclose(result, np.tanh(array).T / 2, rtol=1e-6)
