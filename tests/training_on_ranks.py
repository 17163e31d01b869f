"""Trains networks on the ranks that mpiexec started, or on one process, and keeps what came of it.

As a program: `training_on_ranks.py JOBS RESULTS`, where JOBS is a JSON list of dictionaries with the fields of Job.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import launches
import numpy as np
from safetensors.numpy import load_file, save_file

from app.data import Batches, Dataset, epoch_order, load
from app.ranks import ending
from app.ranks.world import connect, current
from app.run.activation import find_activation
from app.run.config import load_config
from app.run.learners import make_learner
from app.run.options import CONFIGS


@dataclass
class Job:
    """A network that is trained, from a state that another one left behind, if there is one."""

    settings: Sequence[str]
    images: int = 300
    begin: int = 0
    """The epoch that comes first."""
    restore: str | None = None
    save: str | None = None


@dataclass
class Result:
    """What training gave: numbers of every batch, of every epoch, and the weights."""

    losses: list[float]
    accuracies: list[float]
    tests: list[list[float]]
    weights: dict[str, list[float]]

    def figures(self) -> np.ndarray:
        return np.array([*self.losses, *self.accuracies, *np.ravel(self.tests)])


def train(job: Job, ranks: bool = True) -> Result:
    """Do a job, on all ranks or in this process alone."""
    one = () if ranks else ("dist.shape=none",)
    connect()
    config = load_config(CONFIGS / "quick.yaml", [*job.settings, *one])
    data = _some_of_the_sample(job.images)
    learner = make_learner(
        config,
        find_activation(config.model.activation),
        data.train_images.shape[1],
    )
    if job.restore:
        learner.restore(load_file(job.restore))
    result = Result([], [], [], {})
    tests = Batches(data.test_images, data.test_labels, None, config.train.eval_batch_size)
    for epoch in range(job.begin, config.train.epochs):
        order = epoch_order(config.seed, epoch, len(data.train_images))
        losses, accuracies = learner.train(
            Batches(data.train_images, data.train_labels, order, config.train.batch_size)
        )
        learner.end_epoch()
        result.losses += losses.tolist()
        result.accuracies += accuracies.tolist()
        result.tests.append([values.tolist() for values in learner.measure(tests)])
    result.weights = {name: value.ravel().tolist() for name, value in learner.weights().items()}
    if job.save and current().rank == 0:
        save_file(learner.state(), job.save)
    return result


def train_on_ranks(ranks: int, jobs: Sequence[Job], folder: Path) -> list[Result]:
    """Do jobs, one after another, in one launch."""
    (folder / "jobs.json").write_text(json.dumps([asdict(job) for job in jobs]))
    ended = launches.run(ranks, __file__, "jobs.json", "results.json", folder=folder, timeout=900)
    assert (ended.status, ended.messages) == (0, [])
    return [Result(**result) for result in json.loads((folder / "results.json").read_text())]


@cache
def _some_of_the_sample(images: int) -> Dataset:
    data = load("sample")
    train = (data.train_images[:images], data.train_labels[:images])
    test = (data.test_images[: images // 3], data.test_labels[: images // 3])
    return Dataset(*train, *test, data.image_shape, data.origin, data.verified)


def main() -> int:
    jobs, results = map(Path, sys.argv[1:])
    done = [asdict(train(Job(**job))) for job in json.loads(jobs.read_text())]
    if current().rank == 0:
        results.write_text(json.dumps(done))
    return 0


if __name__ == "__main__":
    sys.exit(ending.run(main))
