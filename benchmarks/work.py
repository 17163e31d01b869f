"""The work that every contender does, and the few pieces that they share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

PIXELS, CLASSES = 784, 10


@dataclass(frozen=True)
class Work:
    """A network 784-hidden-10 with ReLU, softmax cross entropy and plain SGD; first the reference work."""

    hidden: tuple[int, ...] = (100,)
    batch: int = 256
    rate: float = 0.01
    epochs: int = 9
    rows: int = 60_000  # how many of the training images are used
    seed: int = 0
    slope: float | None = None  # with one, the ReLU is leaky, and a function that was never seen before
    lenet: bool = False  # the network of configs/lenet.yaml instead

    @property
    def widths(self) -> tuple[int, ...]:
        return (PIXELS, *self.hidden, CLASSES)


class Data(NamedTuple):
    """MNIST: images as rows of bytes, labels as int64."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    def save(self, folder: Path) -> None:
        for name, array in self._asdict().items():
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def read(cls, folder: Path, rows: int) -> Data:
        data = cls(*(np.load(folder / f"{name}.npy") for name in cls._fields))
        return data._replace(train_images=data.train_images[:rows], train_labels=data.train_labels[:rows])


class Epoch(NamedTuple):
    """Seconds of training alone, and the share of test images that the network then gets right."""

    seconds: float
    accuracy: float | None


def run_epochs(work: Work, train: Callable[[], object], test: Callable[[], float | None]) -> Iterator[Epoch]:
    """Time `train`, which must not return before its work is done, and test the network, for each epoch."""
    for _ in range(work.epochs):
        start = time.perf_counter()
        train()
        yield Epoch(time.perf_counter() - start, test())


def scaled(images: np.ndarray) -> np.ndarray:
    """Pixels 0 to 255 as float32 from -1 to 1."""
    floats = np.multiply(images, np.float32(2 / 255), dtype=np.float32)
    floats -= 1
    return floats


def initial_weights(work: Work) -> list[tuple[np.ndarray, np.ndarray]]:
    """Xavier's uniform weights and zero biases, layer by layer, for contenders without an initialiser."""
    random = np.random.default_rng(work.seed)
    layers = []
    for a, b in zip(work.widths[:-1], work.widths[1:], strict=True):
        bound = (6 / (a + b)) ** 0.5
        layers.append((random.uniform(-bound, bound, (a, b)).astype(np.float32), np.zeros(b, np.float32)))
    return layers
