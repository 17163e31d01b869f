"""One training of a comparison: an operator with a seed, as a worker of any executor runs it, and what it gives."""

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
from app.run.callbacks import Callback, Contestant, Position
from app.run.checkpoints import data_hash
from app.run.config import Config, DataConfig
from app.run.events import Epoch, Event, Record, Tested
from app.run.finite import steps_for
from app.run.learners import Learner, PerIteration, make_learner
from app.run.loop import TrainingLoop, overall
from app.run.metrics import Metrics
from app.run.network import Activation, find_activations
from app.run.profiles import Profile, profile
from app.run.resume import check_sources, sources_of
from app.run.steps import Steps, warm_up, warnings_off
from app.run.trust import Trust


@dataclass
class Trained:
    """The result of one training."""

    operator: str
    how: str
    """How the engine runs the network."""
    epochs: list[Epoch]
    tested: Tested | None
    right: np.ndarray
    """Whether the network named each test image, or each validation image, correctly."""
    fingerprint: str
    """Of the trained weights."""
    weights: dict[str, np.ndarray]
    """The trained weights, and the scores of the images below; empty unless they are to be kept."""
    scores: np.ndarray | None
    profile: Profile | None = None
    """What is known of the operator, where the weights are kept."""
    events: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """What a worker has to know of a training. Names stand for operators, which the worker finds by itself."""

    config: Config
    """With the seed of the training, and absolute paths."""
    operator: str
    home: str
    """The file of the user's that the operator lies in; '' for an operator of the framework."""
    sources: dict[str, str | None]
    """The hash of the operator's source."""
    held_by: int
    """The seed by which validation images are held back: that of the whole comparison."""
    data: str
    """The hash of the data set."""
    keep: bool
    """Whether the weights and the scores are to be returned."""


def train_one(job: Job) -> Trained:
    """Train an operator's network from its first weights to its last epoch.

    On one thread, as results depend on the number of threads in their last bits: so all workers give the same.
    """
    with threadpool_limits(1, user_api="blas"):
        return _train_one(job)


def _train_one(job: Job) -> Trained:
    config = job.config
    dataset = _data_set(config.data, job.held_by)
    if data_hash(dataset) != job.data:
        raise DataError(
            f"the images of a worker ({dataset.origin}) differ from those of the comparison: name a folder that all "
            "workers read, data.source=FOLDER"
        )
    activations = find_activations([job.operator], Trust([job.home] if job.home else []))
    check_sources(job.sources, sources_of(activations))
    entered = Contestant(
        job.operator, make_learner(config, activations[0], dataset.train_images.shape[1]), activation=activations[0]
    )
    train = config.train
    warm_up(entered, Batches(dataset.train_images, dataset.train_labels, None, train.batch_size)[:1])
    events: list[Event] = []
    notes: list[str] = []
    steps = steps_for(train.on_nonfinite, events.append, notes.append)
    callbacks: Sequence[Callback] = [Metrics(events.append), steps]
    TrainingLoop(config, dataset, [entered], callbacks, steps=steps).run()
    test_at_end(entered, dataset, config, events.append)
    found = trained(entered, dataset, config, job.keep)
    found.events, found.notes = events, notes
    return found


class _TestedElsewhere(Steps):
    """Steps of learners whose networks are tested by others, which take over their weights."""

    def __init__(self, testers: Mapping[str, Learner]):
        self._testers = testers

    def measure(self, position: Position, tests: Batches) -> PerIteration:
        tester = self._testers[position.contestant.operator]
        tester.restore(position.contestant.learner.state())
        return tester.measure(tests)


def train_in_turns(config: Config, activations: Sequence[Activation], dataset: Dataset) -> list[list[Epoch]]:
    """Train several operators, epoch by epoch in turns, and keep nothing; gives the epochs of each.

    They are tested on the reference engine: a test pass that runs a few times is not worth compiling.
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
def _data_set(data: DataConfig, seed: int) -> Dataset:
    """The data set of a configuration, with its validation images held back."""
    dataset = load(data.source, data.sources, data.folder)
    return dataset.hold_back(data.validation, seed) if data.validation else dataset


def test_at_end(contestant: Contestant, dataset: Dataset, config: Config, record: Record) -> None:
    """Test a trained network on the test images, if its epochs were tested on validation images."""
    if dataset.final_images is None or dataset.final_labels is None:
        return
    tests = Batches(dataset.final_images, dataset.final_labels, None, config.train.eval_batch_size)
    with warnings_off():
        loss, accuracy = overall(*contestant.learner.measure(tests), tests)
    contestant.tested = Tested(contestant.operator, accuracy, loss)
    record(contestant.tested)


def trained(contestant: Contestant, dataset: Dataset, config: Config, keep: bool) -> Trained:
    """What a network that was trained is worth."""
    scores, weights = scores_of(contestant, dataset, config), contestant.learner.weights()
    return Trained(
        contestant.operator,
        contestant.learner.how(),
        contestant.epochs,
        contestant.tested,
        scores.argmax(axis=1) == dataset.test_labels,
        fingerprint(weights),
        weights if keep else {},
        scores if keep else None,
        profile(contestant, dataset) if keep and config.report else None,
    )


def scores_of(contestant: Contestant, dataset: Dataset, config: Config) -> np.ndarray:
    """What a network answers to each test image, or to each validation image."""
    tests = Batches(dataset.test_images, dataset.test_labels, None, config.train.eval_batch_size)
    with warnings_off():
        return contestant.learner.scores(tests)


def fingerprint(weights: Mapping[str, np.ndarray]) -> str:
    """The hash of a network's weights."""
    digest = hashlib.sha256()
    for path, array in sorted(weights.items()):
        digest.update(f"{path} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
