"""The Program of a rank is run on its rows of every batch, and gives the figures of whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import app
from app.data import Batches
from app.engine import Scope
from app.errors import ProgramError
from app.graph import Program, names, static_mode
from app.ranks.current import using
from app.ranks.data_parallel import data_parallel
from app.ranks.executor import RankExecutor, shards
from app.ranks.world import Reduction, World
from app.run.config import Config
from app.run.learners import make_learner
from app.run.network import Activation

pytestmark = pytest.mark.slow


class Place(NamedTuple):
    rank: int
    size: int


def batches(count: int, batch: int, shuffled: bool = True) -> Batches:
    order = np.random.default_rng(0).permutation(count) if shuffled else None
    return Batches(np.arange(count, dtype=np.uint8)[:, None], np.arange(count), order, batch)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 6), st.booleans())
def test_ranks_divide_the_rows_of_each_batch_evenly(count: int, size: int, ranks: int, shuffled: bool):
    whole = batches(count, size, shuffled)
    parts = [
        [(shard.share, labels) for shard in shards(whole, Place(rank, ranks)) for _, labels in shard.batches]
        for rank in range(ranks)
    ]
    for index, (_, expected) in enumerate(whole):
        here = [part[index] for part in parts]
        assert sum(share for share, _ in here) == pytest.approx(1)
        rows = [label for share, labels in here if share for label in labels]
        assert rows == expected.tolist()
        counts = [len(labels) if share else 0 for share, labels in here]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] - counts[-1] <= 1
        for share, labels in here:
            assert share == (pytest.approx(len(labels) / len(expected)) if share else 0)
            assert len(labels) >= 1
    assert {len(part) for part in parts} == {len(whole)}


def test_full_batches_are_one_shard_which_an_engine_runs_in_one_call():
    found = [(shard.share, len(shard.batches)) for shard in shards(batches(23, 4), Place(0, 2))]
    assert found == [(0.5, 5), (2 / 3, 1)]


class Two(World):
    """Two ranks of which this one alone has come: the other has the same figures, and shares memory."""

    size = 2

    def __init__(self) -> None:
        self.averaged: list[np.ndarray] = []
        self.given: list[np.ndarray] = []

    def allreduce(self, buffer: np.ndarray, how: Reduction = "sum") -> None:
        self.averaged.append(buffer)
        if how == "sum":
            buffer *= 2

    def shared(self, like: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        self.given += [np.ndarray(array.shape, array.dtype, bytearray(array.nbytes)) for array in like]
        return self.given


def classifier() -> tuple[Program, Program, str]:
    """Its weights, of 48 bytes, travel by themselves, and its biases, of 12, together."""
    main, startup = Program(), Program()
    startup.random_seed = 1
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x, label = app.static.data("x", [None, 4], "uint8"), app.static.data("label", [None], "int64")
        scores = app.static.nn.fc(x.astype("float32"), 3)
        loss = app.nn.functional.cross_entropy(scores, label)
        app.optimizer.SGD(0.1).minimize(loss)
    return main, startup, loss.name


IMAGES = Batches(np.tile(np.arange(4, dtype=np.uint8), (8, 1)), np.zeros(8, np.int64), None, 4)


def test_parameters_are_averaged_in_shared_memory():
    main, startup, loss = classifier()
    with using(Two()) as world:
        assert isinstance(world, Two)
        here = data_parallel(main, world, loss=loss, bucket=40)
        scope, executor = Scope(), RankExecutor(world, "compiled")
        executor.start(startup, here, scope)
        (room,) = world.given
        for _ in range(2):
            executor.put(scope, "fc_0.w_0", np.ones((4, 3), "float32"))
            executor.run_batches(here, IMAGES, ["x", "label"], [loss], scope)
        assert scope.values["fc_0.w_0"] is room
        large = [buffer for buffer in world.averaged if buffer.nbytes == 48]
        assert len(large) == 4
        assert all(np.shares_memory(buffer, room) for buffer in large)


class Normed(app.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm = app.nn.BatchNorm1D(5)

    def forward(self, x: Any) -> Any:
        return app.relu(self.norm(x))


@pytest.mark.parametrize("engine", ["eager", "reference"])
def test_an_operator_with_running_statistics_is_an_error(engine: str):
    settings = {"engine": engine, "model": {"hidden": [5]}, "dist": {"shape": "allreduce"}}
    with using(Two()), pytest.raises(ProgramError, match=r"each batch updates .*norm.*, for which each rank"):
        make_learner(msgspec.convert(settings, Config), Activation("normed", Normed), 4).warm_up(IMAGES)


def test_figures_are_those_of_whole_batches():
    main, startup, loss = classifier()
    test = main.clone(for_test=True)
    results = []
    for world in (World(), Two()):
        scope, executor = Scope(), RankExecutor(world)
        executor.start(startup, test, scope)
        results.append(executor.run_batches(test, IMAGES, ["x", "label"], [loss], scope))
    for alone, together in zip(*results, strict=True):
        assert alone.dtype == together.dtype
        np.testing.assert_allclose(together, alone, rtol=1e-6)
