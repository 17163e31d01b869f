"""Parameters that ranks average live where the world says that no copy is needed, one scope's at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import app
from app.data import Batches
from app.dist.parallel import data_parallel
from app.dist.running import RankExecutor
from app.dist.world import TimedOperator, Reduction, using
from app.engine import Scope
from app.graph import Program, names, static_mode

ENGINES = ["reference", "compiled"]


class Roomy(Alone):
    """Two ranks of which this is the only one that has come, and the arrays that were asked for."""

    size = 2

    def __init__(self) -> None:
        self.given: list[np.ndarray] = []
        self.averaged: list[np.ndarray] = []

    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        rooms = [np.ndarray(array.shape, array.dtype, bytearray(array.nbytes)) for array in like]
        self.given += rooms
        return rooms

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        assert how == "avg"
        self.averaged.append(buffer)


class Cramped(Roomy):
    def rooms(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        return None


@pytest.fixture(params=[Roomy, Cramped])
def world(request: pytest.FixtureRequest) -> Iterator[Roomy]:
    with using(request.param()) as world:
        yield world


@pytest.fixture(params=ENGINES)
def executor(request: pytest.FixtureRequest, world: Roomy) -> RankExecutor:
    return RankExecutor(world, request.param)


DATA = Batches(np.full((8, 4), 2, np.uint8), np.arange(8) % 3, None, 4)


def network(world: Roomy) -> tuple[Program, Program]:
    """Its weights, of 48 bytes, travel by themselves, and its biases, of 12, together."""
    main, startup = Program(), Program()
    startup.random_seed = 1
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x, label = app.static.data("x", [None, 4], "uint8"), app.static.data("label", [None], "int64")
        scores = app.static.nn.fc(x.astype("float32"), 3)
        loss = app.nn.functional.cross_entropy(scores, label)
        app.optimizer.SGD(0.1).minimize(loss)
    return data_parallel(main, startup, world, loss=loss.name, bucket=40)


def started(executor: RankExecutor, startup: Program) -> Scope:
    executor.run(startup, scope=(scope := Scope()))
    return scope


def train(executor: RankExecutor, main: Program, scope: Scope) -> np.ndarray:
    executor.train_from_dataset(main, DATA, ["x", "label"], [], scope)
    return scope.values["fc_0.w_0"].copy()


def test_training_comes_to_the_same_wherever_parameters_live(executor: RankExecutor, world: Roomy):
    main, startup = network(world)
    scope = started(executor, startup)
    first = scope.values["fc_0.w_0"].copy()
    weights = [train(executor, main, scope) for _ in range(3)]
    with using(Cramped()) as elsewhere:
        other = RankExecutor(elsewhere, "reference")
        same = started(other, startup)
        expected = [train(other, main, same) for _ in range(3)]
    assert (weights[0] != first).any()
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_what_is_averaged_lies_in_the_room(world: Roomy):
    executor = RankExecutor(world, "compiled")
    main, startup = network(world)
    scope = started(executor, startup)
    train(executor, main, scope)
    train(executor, main, scope)
    large = [buffer for buffer in world.averaged if buffer.nbytes == 48]
    assert len(large) == 4
    if not isinstance(world, Cramped):
        (room,) = world.given
        assert scope.values["fc_0.w_0"] is room
        assert all(np.shares_memory(buffer, room) for buffer in large)


def test_one_scope_makes_room_for_another(executor: RankExecutor, world: Roomy):
    main, startup = network(world)
    scopes = [started(executor, startup) for _ in range(2)]
    first = train(executor, main, scopes[0])
    for _ in range(2):
        second = train(executor, main, scopes[1])
    np.testing.assert_array_equal(scopes[0].values["fc_0.w_0"], first)
    np.testing.assert_array_equal(train(executor, main, scopes[0]), second)
    assert len(world.given) <= 1


def test_new_values_are_taken_from_where_they_were_put(executor: RankExecutor, world: Roomy):
    main, startup = network(world)
    scope = started(executor, startup)
    before = scope.values["fc_0.w_0"].copy(), scope.values["fc_0.b_0"].copy()
    first = train(executor, main, scope)
    for name, value in zip(("fc_0.w_0", "fc_0.b_0"), before, strict=True):
        scope.var(name).set(value)
    np.testing.assert_array_equal(train(executor, main, scope), first)
