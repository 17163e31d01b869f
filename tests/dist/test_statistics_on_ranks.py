"""A layer may keep running statistics, which each rank has of its own rows: all go on with the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import training_on_ranks
from ranks import run
from training_on_ranks import Job

NORMED = """
import app

class Normed(app.nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm = app.nn.BatchNorm1D(8)

    def forward(self, x):
        return app.relu(self.norm(x))
"""


def test_running_statistics_of_layers_stay_the_same_at_all_ranks(tmp_path: Path):
    file = tmp_path / "ops.py"
    file.write_text(NORMED)
    small = ("model.hidden=[8]", "train.epochs=2", f"model.activation={file}:Normed", "dist.shape=allreduce")
    jobs = [Job([*small, f"engine={engine}"]) for engine in ("eager", "reference")]
    (tmp_path / "jobs.json").write_text(json.dumps([asdict(job) for job in jobs]))
    ended = run(2, training_on_ranks.__file__, "jobs.json", "results.json", folder=tmp_path)
    assert (ended.status, ended.messages) == (0, [])
