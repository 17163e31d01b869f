"""Three and four ranks train as one process does, on however few cores: five epochs, all shapes, uneven shares.

By rows, and in pieces, an operator with a kink gives the same bits; without, one that has none the same to rounding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import training_on_ranks
from ranks import run
from training_on_ranks import Job, Result

from app.engine.compiled import blas

FIVE = ("train.epochs=5", "model.activation=custom.tanh", "train.eval_batch_size=101")
JOBS = [  # of a smooth operator: which side of a kink a number is on is a matter of rounding
    Job([*FIVE, "dist.shape=allreduce"], images=10_000),
    Job([*FIVE, "dist.shape=pserver", "train.optimizer=momentum", "train.learning_rate=0.002"], images=5_003),
    Job([*FIVE, "dist.shape=allreduce", "engine=reference", "train.batch_size=3", "model.hidden=[9]"], images=50),
]
IN_PIECES = [
    Job(["train.epochs=5", "dist.pieces=12", "dist.shape=allreduce", "model.activation=custom.relu"], images=10_000),
    Job(["train.epochs=5", "dist.pieces=12", "dist.shape=pserver", "train.optimizer=adam"], images=5_003),
]
BY_ROWS = [
    Job(["train.epochs=5", "dist.shape=rows", "model.activation=custom.relu", "model.hidden=[100]"], images=10_000),
    Job(["train.epochs=5", "dist.shape=rows", "train.optimizer=adam", "model.hidden=[40,30]"], images=5_003),
]
_worst: dict[int, float] = {}


@pytest.fixture(scope="module")
def alone_in_pieces() -> list[Result]:
    return [training_on_ranks.train(job, ranks=False) for job in IN_PIECES]


@pytest.mark.parametrize("ranks", [3, 4])
def test_losses_are_those_of_one_process(ranks: int, tmp_path: Path, figure: Callable[[str, str], None]):
    for job, many in zip(JOBS, _on_ranks(ranks, JOBS, tmp_path), strict=True):
        one = training_on_ranks.train(replace(job, settings=[*job.settings, "engine=reference"]), ranks=False)
        np.testing.assert_allclose(many.figures(), one.figures(), rtol=1e-5, atol=1e-7)
        apart = np.abs(np.array(many.losses) / np.array(one.losses) - 1).max()
        _worst[ranks] = max(_worst.get(ranks, 0.0), float(apart))
    figure("ranks apart", ", ".join(f"{apart:.0e} at {n} ranks" for n, apart in sorted(_worst.items())))


NORMALISED = """
import app

class Normalised(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm = app.nn.BatchNorm1D(32)

    def forward(self, x):
        return app.nn.functional.relu(self.norm(x))
"""


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_by_rows_they_are_the_bits_of_as_many_threads(ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "layers.py").write_text(NORMALISED)
    normalised = Job([f"model.activation={tmp_path}/layers.py:Normalised", "model.hidden=[32]", "dist.shape=rows"])
    jobs = [*BY_ROWS, normalised]
    monkeypatch.setattr(blas, "threads", lambda: ranks)
    monkeypatch.setattr("app.engine.compiled.program.threads_worth", lambda lowered, n, most: most)
    assert _on_ranks(ranks, jobs, tmp_path) == [training_on_ranks.train(job, ranks=False) for job in jobs]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_in_pieces_they_are_the_same_bits(ranks: int, tmp_path: Path, alone_in_pieces: list[Result]):
    assert _on_ranks(ranks, IN_PIECES, tmp_path) == alone_in_pieces


def _on_ranks(ranks: int, jobs: Sequence[Job], folder: Path) -> list[Result]:
    (folder / "jobs.json").write_text(json.dumps([asdict(job) for job in jobs]))
    ended = run(ranks, training_on_ranks.__file__, "jobs.json", "results.json", folder=folder, timeout=900)
    assert (ended.status, ended.messages) == (0, [])
    return [Result(**result) for result in json.loads((folder / "results.json").read_text())]
