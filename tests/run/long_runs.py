"""Training for many iterations, and the memory that it holds on the way: `python long_runs.py ENGINE ITERATIONS`."""

import resource
import sys
from pathlib import Path

from app.data import Batches, load
from app.run.activation import find_activation
from app.run.callbacks import Position
from app.run.config import Config, ModelConfig, TrainConfig
from app.run.learners import make_learner
from app.run.steps import take_steps

PIECE = 50
FIRST = 100
"""Iterations after which everything is there that a run needs."""


class LongRun:
    """A network on small batches, trained piece by piece as the loop does it."""

    def __init__(self, engine, dataset):
        config = Config(engine=engine, model=ModelConfig(hidden=(16,)), train=TrainConfig(optimizer="adam"))
        activation = find_activation(config.model.activation)
        learner = make_learner(config, activation, dataset.train_images.shape[1])
        self.batches = Batches(dataset.train_images, dataset.train_labels, None, 32)
        learner.compile(self.batches[:1])
        self.place = Position(learner, 0, len(self.batches))

    def train(self, iterations):
        pieces = len(self.batches) // PIECE
        for piece in range(iterations // PIECE):
            start = piece % pieces * PIECE
            take_steps(self.place, self.batches[start : start + PIECE])


def resident():
    """The bytes of memory that this process holds now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux: the most that it ever held
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return pages * resource.getpagesize()


def main(engine, iterations):
    run = LongRun(engine, load("sample"))
    run.train(FIRST)
    first = resident()
    run.train(iterations - FIRST)
    print(first, resident())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
