"""What is measured under mpiexec: the time of iterations, or the losses of whole epochs. Prints JSON.

mpiexec -n 2 python -m benchmarks.scaling.measuring '{"widths": [256], "batches": [256], "shapes": ["allreduce"]}'
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import msgspec
import numpy as np

from app.data import Batches, epoch_order, load
from app.ranks import ending
from app.ranks.current import current
from app.ranks.world import World
from app.run.config import Config
from app.run.learners import make_learner
from app.run.network import find_activation

PIXELS, CLASSES = 784, 10
_ROUNDS, _ITERATIONS = 25, 20
"""Many short tries, so that some of them meet nothing else that the machine does."""


def _seconds(world: World, action: Callable[[], object], rounds: int) -> float:
    """The seconds that something takes: a quarter of the tries are faster; the first does not count."""
    taken = []
    for _ in range(rounds + 1):
        world.barrier()
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.quantiles(taken[1:], n=4, method="inclusive")[0]


def _points(world: World, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(0)
    rows = max(asked["batches"]) * _ITERATIONS
    images = random.integers(0, 256, (rows, PIXELS)).astype(np.uint8)
    labels = random.integers(0, CLASSES, rows)
    for width, shape in product(asked["widths"], asked["shapes"]):
        settings = {"model": {"hidden": [width]}, "dist": {"shape": shape}}
        learner = make_learner(msgspec.convert(settings, Config), find_activation("custom.relu"), PIXELS)
        learner.warm_up(Batches(images, labels, None, asked["batches"][0])[:1])
        for batch in asked["batches"]:
            batches = Batches(images, labels, None, batch)[: asked.get("iterations", _ITERATIONS)]
            seconds = _seconds(world, partial(learner.train, batches), asked.get("rounds", _ROUNDS)) / len(batches)
            yield {"width": width, "shape": shape, "batch": batch, "seconds": seconds}


def _losses(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The loss of every batch of MNIST over some epochs, for each operator."""
    config = msgspec.convert({"dist": {"shape": asked["shape"]}}, Config)
    data = load(config.data.source, config.data.sources, config.data.folder)
    for operator in asked["operators"]:
        learner, losses = make_learner(config, find_activation(operator), PIXELS), []
        for epoch in range(asked["epochs"]):
            order = epoch_order(config.seed, epoch, len(data.train_images))
            batches = Batches(data.train_images, data.train_labels, order, config.train.batch_size)
            losses += learner.train(batches)[0].tolist()
        yield {"operator": operator, "losses": losses}


def _measure() -> int:
    world, asked = current(), json.loads(sys.argv[1])
    print(json.dumps(list(_losses(asked) if "operators" in asked else _points(world, asked))))
    return 0


if __name__ == "__main__":
    sys.exit(ending.run(_measure))
