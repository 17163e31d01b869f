"""A network together with what trains it: as a Program that an engine runs, or eagerly."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from app.data import Batches
from app.engine import Executor, Scope
from app.graph import Program, names, program_guard, static_mode
from app.nn import functional
from app.ops import random
from app.ops.loss import accuracy
from app.optimizer import SGD, Adam, Momentum, Optimizer, lr
from app.static import data
from app.tensor import Tensor, no_grad
from app.training.activation import Activation
from app.training.config import Config, TrainConfig
from app.training.network import Network

PerIteration = tuple[np.ndarray, np.ndarray]
"""The loss and the accuracy of each batch."""


class Learner(Protocol):
    """What the training loop needs of a network, whichever engine runs it."""

    def warm_up(self, batches: Batches) -> None:
        """Train without effect, so that what is compiled at first use is compiled before an epoch is timed."""

    def train(self, batches: Batches) -> PerIteration:
        """Take a step for each batch; gives the loss and the accuracy before each step."""

    def measure(self, batches: Batches) -> PerIteration:
        """The loss and the accuracy of each batch, changing nothing."""

    def end_epoch(self) -> None:
        """Advance the learning-rate schedule."""

    def weights(self) -> dict[str, np.ndarray]:
        """A copy of every parameter, by its path in the network."""

    def how(self) -> str:
        """How the engine runs the network's operators, in a line; '' where it runs all of them alike."""


def make_learner(config: Config, activation: Activation, pixels: int) -> Learner:
    """A network with this activation, its initial weights given by the configuration's seed alone."""
    kind = EagerLearner if config.engine == "eager" else ProgramLearner
    return kind(config, activation, pixels)


def _schedule(config: TrainConfig) -> lr.LRScheduler:
    if config.schedule == "cosine":
        return lr.CosineAnnealingDecay(config.learning_rate, config.epochs)
    if config.schedule == "linear":
        return lr.PolynomialDecay(config.learning_rate, config.epochs, end_lr=0.0)
    return lr.LRScheduler(config.learning_rate)


def _optimizer(config: TrainConfig, schedule: lr.LRScheduler, parameters: list[Any]) -> Optimizer:
    if config.optimizer == "momentum":
        return Momentum(schedule, config.momentum, parameters, weight_decay=config.weight_decay)
    kind = Adam if config.optimizer == "adam" else SGD
    return kind(schedule, parameters=parameters, weight_decay=config.weight_decay)


class ProgramLearner:
    """The network as a startup, a training and a test Program."""

    def __init__(self, config: Config, activation: Activation, pixels: int):
        self.main, self.startup = Program(), Program()
        self.startup.random_seed = config.seed
        self._schedule = _schedule(config.train)
        with names.guard(), program_guard(self.main, self.startup), static_mode():
            image = data("image", [None, pixels], "uint8")
            label = data("label", [None], "int64")
            network = Network(config.model, activation, pixels, config.data.pixel_range)
            scores = network(image)
            self.fetch = [functional.cross_entropy(scores, label).name, accuracy(scores, label).name]
            self.test = self.main.clone(for_test=True)
            parameters = dict(network.named_parameters())
            optimizer = _optimizer(config.train, self._schedule, list(parameters.values()))
            _, trained = optimizer.minimize(self.main.global_block().var(self.fetch[0]))
        self._feed = [image.name, label.name]
        self._paths = {path: variable.name for path, variable in parameters.items()}
        changing = {variable.name for variable, _ in trained}
        activation.require_gradients([path for path, name in self._paths.items() if name not in changing])
        self._scope = Scope()
        self._native = config.engine == "compiled"
        self._executor = Executor(engine=config.engine)
        self._executor.run(self.startup, scope=self._scope)

    def warm_up(self, batches: Batches) -> None:
        copies = Scope()
        copies.values = {name: value.copy() for name, value in self._scope.values.items()}
        self._run(self.main, batches, copies)

    def train(self, batches: Batches) -> PerIteration:
        return self._run(self.main, batches, self._scope)

    def measure(self, batches: Batches) -> PerIteration:
        return self._run(self.test, batches, self._scope)

    def _run(self, program: Program, batches: Batches, scope: Scope) -> PerIteration:
        loss, score = self._executor.train_from_dataset(program, batches, self._feed, self.fetch, scope)
        return loss, score

    def end_epoch(self) -> None:
        self._schedule.step()

    def how(self) -> str:
        if not self._native:
            return ""
        from app.engine.compiled.explain import in_short  # imported late, as Numba is

        return in_short(self.main, self.fetch)

    def weights(self) -> dict[str, np.ndarray]:
        return {path: self._scope.value(name).copy() for path, name in self._paths.items()}


class EagerLearner:
    """The network as Tensors, one operator at a time."""

    def __init__(self, config: Config, activation: Activation, pixels: int):
        random.seed(config.seed)
        self._activation = activation
        self._network = Network(config.model, activation, pixels, config.data.pixel_range)
        self._schedule = _schedule(config.train)
        self._optimizer = _optimizer(config.train, self._schedule, self._network.parameters())

    def warm_up(self, batches: Batches) -> None:
        for image, label in batches:
            self._loss(image, label)[0].backward()
        self._activation.require_gradients([path for path, p in self._network.named_parameters() if p.grad is None])
        self._optimizer.clear_grad()

    def train(self, batches: Batches) -> PerIteration:
        rows = []
        for image, label in batches:
            loss, score = self._loss(image, label)
            loss.backward()
            self._optimizer.step()
            self._optimizer.clear_grad()
            rows.append((loss.item(), score.item()))
        return _columns(rows)

    def measure(self, batches: Batches) -> PerIteration:
        with no_grad():
            pairs = [self._loss(image, label) for image, label in batches]
        return _columns([(loss.item(), score.item()) for loss, score in pairs])

    def _loss(self, image: np.ndarray, label: np.ndarray) -> tuple[Any, Any]:
        scores, labels = self._network(Tensor(image)), Tensor(label)
        return functional.cross_entropy(scores, labels), accuracy(scores, labels)

    def end_epoch(self) -> None:
        self._schedule.step()

    def how(self) -> str:
        return ""

    def weights(self) -> dict[str, np.ndarray]:
        return {path: parameter.numpy() for path, parameter in self._network.named_parameters()}


def _columns(rows: list[tuple[float, float]]) -> PerIteration:
    loss, score = np.array(rows, dtype=np.float32).reshape(-1, 2).T
    return loss, score
