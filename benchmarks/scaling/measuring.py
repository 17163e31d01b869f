"""What is measured under mpiexec: the network between the ranks, and iterations of training. Prints JSON.

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

from app.data import Batches
from app.dist import ending
from app.dist.world import World, current
from app.engine.team import Parted
from app.run.config import Config
from app.run.learners import make_learner
from app.run.network import find_activation
from benchmarks.scaling.model import CLASSES, PIXELS, cost_of

_ROUNDS, _ITERATIONS = 25, 20
"""Many short tries, so that some of them meet nothing else that the machine does."""
_SMALL, _LARGE = 1, 1 << 20
"""Numbers of a message that shows the latency, and of one that shows the bandwidth."""


def _network(world: World, shape: str) -> dict[str, float]:
    """Latency and bandwidth, from how long what a shape does takes with few numbers and with many."""
    short, long = (_seconds_of(world, shape, numbers) for numbers in (_SMALL, _LARGE))
    few, many = (cost_of(shape, world.size, 4 * numbers) for numbers in (_SMALL, _LARGE))
    return {"latency": short / few.messages, "bandwidth": (many.bytes - few.bytes) / (long - short)}


def _seconds_of(world: World, shape: str, numbers: int) -> float:
    buffer = np.full(numbers, 1e-30, np.float32)

    def server() -> None:
        world.reduce(buffer)
        world.broadcast(buffer)

    (room,) = world.rooms([buffer]) or [buffer]  # where parameters live that are averaged, or exchanged
    ends = [numbers * rank // world.size for rank in range(world.size + 1)]
    actions = {
        "rows": world.exchanging([Parted(room, ends)]),
        "allreduce": partial(world.allreduce, room, "avg"),
        "pserver": server,
    }
    return _seconds(world, actions[shape], 400 if numbers == _SMALL else 60)


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
        for pieces in asked.get("pieces", [None]):
            settings = {"model": {"hidden": [width]}, "dist": {"shape": shape, "pieces": pieces}}
            learner = make_learner(msgspec.convert(settings, Config), find_activation("custom.relu"), PIXELS)
            learner.warm_up(Batches(images, labels, None, asked["batches"][0])[:1])
            for batch in asked["batches"]:
                batches = Batches(images, labels, None, batch)[: asked.get("iterations", _ITERATIONS)]
                seconds = _seconds(world, partial(learner.train, batches), asked.get("rounds", _ROUNDS)) / len(batches)
                yield {"width": width, "shape": shape, "batch": batch, "pieces": pieces, "seconds": seconds}


def _measure() -> int:
    world, asked = current(), json.loads(sys.argv[1])
    network = {shape: _network(world, shape) for shape in asked["shapes"]} if world.size > 1 else None
    world.configure(latency=asked.get("latency", 0.0), bandwidth=asked.get("bandwidth"))
    points = list(_points(world, asked))
    print(json.dumps({"ranks": world.size, "network": network, "points": points}))
    return 0


if __name__ == "__main__":
    sys.exit(ending.run(_measure))
