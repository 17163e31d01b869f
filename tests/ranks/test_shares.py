"""The Program of a rank is run on its rows of every batch, and gives the figures of whole batches."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import using

import app
from app.data import Batches
from app.engine import Executor, Scope
from app.errors import ProgramError
from app.graph import Program, names, static_mode
from app.ranks.shares import run_share, shares
from app.ranks.world import World
from app.run.activation import Activation
from app.run.config import Config
from app.run.learners import make_learner

pytestmark = pytest.mark.slow


def batches(count: int, batch: int, shuffled: bool = True) -> Batches:
    order = np.random.default_rng(0).permutation(count) if shuffled else None
    return Batches(np.arange(count, dtype=np.uint8)[:, None], np.arange(count), order, batch)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 6), st.booleans())
def test_ranks_divide_the_rows_of_each_batch_evenly(count: int, size: int, ranks: int, shuffled: bool):
    whole = batches(count, size, shuffled)
    parts = [
        [(share.fraction, labels) for share in shares(whole, rank, ranks) for _, labels in share.batches]
        for rank in range(ranks)
    ]
    for index, (_, expected) in enumerate(whole):
        here = [part[index] for part in parts]
        assert sum(fraction for fraction, _ in here) == pytest.approx(1)
        rows = [label for fraction, labels in here if fraction for label in labels]
        assert rows == expected.tolist()
        counts = [len(labels) if fraction else 0 for fraction, labels in here]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] - counts[-1] <= 1
        for fraction, labels in here:
            assert fraction == (pytest.approx(len(labels) / len(expected)) if fraction else 0)
            assert len(labels) >= 1
    assert {len(part) for part in parts} == {len(whole)}


def test_full_batches_are_one_share_which_an_engine_runs_in_one_call():
    parts = [(share.fraction, len(share.batches)) for share in shares(batches(23, 4), 0, 2)]
    assert parts == [(0.5, 5), (2 / 3, 1)]


class Two(World):
    """Two ranks, of which the other one has the same figures as this one."""

    size = 2

    def allreduce(self, buffer: np.ndarray) -> None:
        buffer *= 2


def classifier() -> tuple[Program, Program, str]:
    main, startup = Program(), Program()
    startup.random_seed = 1
    with names.guard(), app.static.program_guard(main, startup), static_mode():
        x, label = app.static.data("x", [None, 4], "uint8"), app.static.data("label", [None], "int64")
        scores = app.static.nn.fc(x.astype("float32"), 3)
        loss = app.nn.functional.cross_entropy(scores, label)
        app.optimizer.SGD(0.1).minimize(loss)
    return main, startup, loss.name


IMAGES = Batches(np.tile(np.arange(4, dtype=np.uint8), (8, 1)), np.zeros(8, np.int64), None, 4)


class Normed(app.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm = app.nn.BatchNorm1D(5)

    def forward(self, x: Any) -> Any:
        return app.relu(self.norm(x))


def test_an_operator_with_running_statistics_is_an_error():
    settings = {"engine": "reference", "model": {"hidden": [5]}, "dist": {"shape": "allreduce"}}
    with using(Two()), pytest.raises(ProgramError, match=r"each batch updates .*norm.*, for which each rank"):
        make_learner(msgspec.convert(settings, Config), Activation("normed", Normed), 4).compile(IMAGES)


def test_figures_are_those_of_whole_batches():
    main, startup, loss = classifier()
    test = main.clone(for_test=True)
    scope, executor = Scope(), Executor()
    executor.run(startup, scope=scope)
    arguments = (test, IMAGES, ["x", "label"], [loss], scope)
    (alone,), (together,) = executor.train_from_dataset(*arguments), run_share(Two(), executor, *arguments)
    assert alone.dtype == together.dtype
    np.testing.assert_allclose(together, alone, rtol=1e-6)
