"""One training of a comparison (an operator with a seed), run by a worker of an executor."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from app.data import Batches, Dataset, load
from app.errors import DataError
from app.run.callbacks import Contestant, Position
from app.run.checkpoints import data_hash
from app.run.config import Config, DataConfig
from app.run.events import Epoch, Event, Record, Tested
from app.run.learners import Learner, PerIteration, make_learner
from app.run.loop import TrainingLoop, overall
from app.run.metrics import Metrics
from app.run.network import Activation, find_all
from app.run.profiles import Profile, profile
from app.run.resume import check_sources, sources_of
from app.run.steps import Steps, warm_up, warnings_off


@dataclass
class Trained:
    """The result of one training."""

    operator: str
    how: str
    """A description of how the engine runs the network."""
    epochs: list[Epoch]
    tested: Tested | None
    images: int
    """The number of test images, or of validation images, in an accuracy."""
    fingerprint: str
    """The hash of the trained weights."""
    weights: dict[str, np.ndarray]
    """The trained weights, and the scores of the images below; empty unless requested."""
    scores: np.ndarray | None
    profile: Profile | None = None
    """The report data of the operator, if the weights are stored."""
    events: list[Event] = field(default_factory=list)

    @property
    def accuracy(self) -> float:
        """The accuracy after the last epoch."""
        return self.epochs[-1].test_accuracy


@dataclass(frozen=True)
class Job:
    """The description of a training for a worker. Operators are given by name, and the worker imports them."""

    config: Config
    """The configuration with this training's seed and absolute paths."""
    operator: str
    homes: dict[str, str]
    """The user's files that define the operator and those of single layers, by operator."""
    sources: dict[str, str | None]
    """The hashes of these operators' sources."""
    held_by: int
    """The seed that selects validation images: that of the whole comparison."""
    data: str
    """The hash of the data set."""
    keep: bool
    """Whether to return the weights and the scores."""


def train_one(job: Job) -> Trained:
    """Train an operator's network from initialisation to its last epoch. It runs on one thread, because the number of
    threads changes the last bits of results and all workers must agree.
    """
    with threadpool_limits(1, user_api="blas"):
        return _train_one(job)


def _train_one(job: Job) -> Trained:
    config = job.config
    dataset = _data_set(config.data, job.held_by, job.data)
    if data_hash(dataset) != job.data:
        raise DataError(
            f"the images of a worker ({dataset.origin}) differ from those of the comparison: use a folder that all "
            "workers can read, data.source=FOLDER"
        )
    activations = find_all([job.operator], config.model, homes=job.homes)
    check_sources(job.sources, sources_of(activations))
    entered = Contestant(
        job.operator, make_learner(config, activations[0], dataset.image_shape), activation=activations[0]
    )
    train = config.train
    warm_up(entered, Batches(dataset.train_images, dataset.train_labels, None, train.batch_size)[:1])
    events: list[Event] = []
    TrainingLoop(config, dataset, [entered], [Metrics(events.append)], steps=Steps(events.append)).run()
    test_at_end(entered, dataset, config, events.append)
    found = trained(entered, dataset, config, job.keep)
    found.events = events
    return found


class _TestedElsewhere(Steps):
    """Training steps of learners whose networks are tested by other learners with the same weights."""

    def __init__(self, testers: Mapping[str, Learner]):
        super().__init__()
        self._testers = testers

    def measure(self, position: Position, tests: Batches) -> PerIteration:
        tester = self._testers[position.contestant.operator]
        tester.restore(position.contestant.learner.state())
        return tester.measure(tests)


def train_in_turns(config: Config, activations: Sequence[Activation], dataset: Dataset) -> list[list[Epoch]]:
    """Train several operators in turns, epoch by epoch, without storing anything; return the epochs of each. They are
    tested on the reference engine: compiling a test pass that runs a few times is not worthwhile.
    """
    shape, train = dataset.image_shape, config.train
    entered = [Contestant(a.name, make_learner(config, a, shape), activation=a) for a in activations]
    for contestant in entered:
        warm_up(contestant, Batches(dataset.train_images, dataset.train_labels, None, train.batch_size)[:1])
    tested = msgspec.structs.replace(config, engine="reference")
    steps = _TestedElsewhere({a.name: make_learner(tested, a, shape) for a in activations})
    TrainingLoop(config, dataset, entered, [], steps=steps).run()
    return [contestant.epochs for contestant in entered]


@lru_cache(maxsize=1)  # for the next training of this worker
def _data_set(data: DataConfig, seed: int, digest: str) -> Dataset:
    """Return the data set of a configuration, with its validation images held back; it should have this hash."""
    dataset = load(data.source, data.sources, data.folder)
    return dataset.hold_back(data.validation, seed) if data.validation else dataset


def test_at_end(contestant: Contestant, dataset: Dataset, config: Config, record: Record) -> None:
    """Test a trained network on the test images if its epochs were tested on validation images."""
    if dataset.final_images is None or dataset.final_labels is None:
        return
    tests = Batches(dataset.final_images, dataset.final_labels, None, config.train.eval_batch_size)
    with warnings_off():
        loss, accuracy = overall(*contestant.learner.measure(tests), tests)
    contestant.tested = Tested(contestant.operator, accuracy, loss)
    record(contestant.tested)


def trained(contestant: Contestant, dataset: Dataset, config: Config, keep: bool) -> Trained:
    """Return the result of a trained network."""
    weights = contestant.learner.weights()
    return Trained(
        contestant.operator,
        contestant.learner.how(),
        contestant.epochs,
        contestant.tested,
        len(dataset.test_labels),
        fingerprint(weights),
        weights if keep else {},
        scores_of(contestant, dataset, config) if keep else None,
        profile(contestant, dataset) if keep and config.report else None,
    )


def scores_of(contestant: Contestant, dataset: Dataset, config: Config) -> np.ndarray:
    """Return the scores of a network for each test image, or for each validation image."""
    tests = Batches(dataset.test_images, dataset.test_labels, None, config.train.eval_batch_size)
    with warnings_off():
        return contestant.learner.scores(tests)


def fingerprint(weights: Mapping[str, np.ndarray]) -> str:
    """Return the hash of a network's weights."""
    digest = hashlib.sha256()
    for path, array in sorted(weights.items()):
        digest.update(f"{path} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
