"""A learner whose network runs eagerly on Tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from app.data import Batches
from app.engine.watch import OperatorRun, watch_tensors
from app.nn import functional
from app.ops.loss import accuracy
from app.run.activation import Activation
from app.run.config import Config
from app.run.learners.learner import Learner, PerIteration, optimizer_of
from app.run.network import ImageShape, Network
from app.tensor import Tensor, no_grad


class EagerLearner(Learner):
    """Runs the network eagerly, in one process: what ranks share is a Program."""

    def __init__(self, config: Config, activation: Activation, image_shape: ImageShape):
        super().__init__(config, activation)
        with self.streams.drawing():
            self._network = Network(config.model, activation, image_shape, config.data.pixel_range)
        self.shapes = self._network.shapes
        self._optimizer = optimizer_of(config.train, self.schedule, self._network.parameters())

    def compile(self, batches: Batches) -> None:
        before = self.state()
        with self.streams.drawing(advance=False):
            for image, label in batches:
                self._run(Tensor(image), label)[0].backward()
        trained = [(path, p) for path, p in self._network.named_parameters() if not p.stop_gradient]
        self.activation.require_gradients([path for path, p in trained if p.grad is None])
        self._optimizer.clear_grad(set_to_zero=False)
        self.restore(before)  # running statistics have changed

    def train(self, batches: Batches) -> PerIteration:
        with self.streams.drawing():
            return _columns([self._step(*batch) for batch in batches])

    def _step(self, image: np.ndarray, label: np.ndarray) -> tuple[float, float]:
        loss, score = self._run(Tensor(image), label)
        loss.backward()
        self._optimizer.step()
        self._optimizer.clear_grad(set_to_zero=False)
        return loss.item(), score.item()

    def measure(self, batches: Batches) -> PerIteration:
        with self._in_use(), self.streams.drawing(advance=False):
            values = [self._run(Tensor(image), label) for image, label in batches]
            return _columns([(loss.item(), score.item()) for loss, score in values])

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Put layers in evaluation mode and disable gradients inside the block."""
        self._network.eval()
        try:
            with no_grad():
                yield
        finally:
            self._network.train()

    def _run(self, image: Tensor, label: np.ndarray) -> tuple[Any, Any]:
        """Return the loss and the accuracy."""
        scores, labels = self._network(image), Tensor(label)
        return functional.cross_entropy(scores, labels, ignore_index=None), accuracy(scores, labels)

    def _loss(self, label: np.ndarray, image: Tensor) -> Tensor:
        loss: Tensor = self._run(image, label)[0]
        return loss

    def replay(self, batches: Batches, training: bool) -> Iterator[OperatorRun]:
        paths = {id(parameter): path for path, parameter in self._network.named_parameters()}
        for index, (image, label) in enumerate(batches):
            with self.streams.drawing(advance=False):
                runs = watch_tensors(partial(self._loss, label), image, paths, backward=training)
            yield from runs
            if training:
                before = self.weights()
                self.train(batches[index : index + 1])
                for path, value in self.weights().items():
                    yield OperatorRun(f"the update of {path}", [(path, before[path])], [(path, value)])

    def weights(self) -> dict[str, np.ndarray]:
        return {path: parameter.numpy() for path, parameter in self._network.named_parameters()}

    def values(self) -> dict[str, np.ndarray]:
        return {name: tensor.numpy() for name, tensor in self._tensors().items()}

    def assign(self, name: str, value: np.ndarray) -> None:
        self._tensors()[name].set_value(value)

    def _tensors(self) -> dict[str, Tensor]:
        """Return all persistent state by its path in the network. Optimiser state is named after its parameter and a
        colon."""
        tensors: dict[str, Tensor] = self._network.state_dict()
        for path, parameter in self._network.named_parameters():
            remembered = self._optimizer.states_of(parameter)
            tensors.update({f"{path}:{name}": tensor for name, tensor in remembered.items()})
        return tensors


def _columns(rows: list[tuple[float, float]]) -> PerIteration:
    """The losses and the accuracies of iterations, as arrays."""
    losses, accuracies = np.array(rows, np.float32).reshape(-1, 2).T
    return losses, accuracies
