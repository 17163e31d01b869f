"""The time of an iteration on many ranks, from what one computes and what the network does: see docs/scaling.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.dist.messages import BUCKET
from app.dist.simulated import Cost, allreduce, broadcast, exchange, reduce

PIXELS, CLASSES, FLOAT = 784, 10, 4
PAYS = 1.25
"""Doubling the ranks pays as long as it makes an iteration so many times as fast."""


@dataclass(frozen=True)
class Network:
    """Seconds that a message takes however short it is, and bytes a second."""

    latency: float
    bandwidth: float

    def seconds(self, cost: Cost) -> float:
        """What a collective takes."""
        return cost.messages * self.latency + cost.bytes / self.bandwidth


@dataclass(frozen=True)
class Computing:
    """Seconds that one rank computes: for each iteration, whatever its rows, and for each row."""

    fixed: float
    per_row: float

    def seconds(self, rows: float) -> float:
        """What an iteration takes of so many rows."""
        return self.fixed + self.per_row * rows


def fitted(seconds: dict[int, float]) -> Computing:
    """The line through the seconds that iterations of some batch sizes took."""
    count, rows, total = len(seconds), sum(seconds), sum(seconds.values())
    squares, products = sum(r * r for r in seconds), sum(r * s for r, s in seconds.items())
    per_row = (count * products - rows * total) / (count * squares - rows * rows)
    fixed = (total - per_row * rows) / count
    return Computing(fixed, per_row) if fixed > 0 else Computing(0.0, products / squares)


def arrays(width: int) -> list[int]:
    """The bytes of each parameter of the network with one hidden layer."""
    return [FLOAT * count for count in (PIXELS * width, width, width * CLASSES, CLASSES)]


def messages(parameters: Sequence[int], bucket: int = BUCKET) -> list[int]:
    """The bytes of each message: small arrays travel together."""
    large = [size for size in parameters if size >= bucket]
    small = sum(size for size in parameters if size < bucket)
    return [*large, small] if small else large


def exchanges(width: int, batch: int) -> list[int]:
    """The bytes that pass at each meeting of an iteration by rows: all parameters, and what the batch gives."""
    of_a_row = FLOAT * (PIXELS + 2 * width + 2 * CLASSES + 1) + 8  # images, the hidden layer, scores, their gradients
    return [sum(arrays(width)), batch * of_a_row]


def communication(sizes: Sequence[int], ranks: int, shape: str, network: Network) -> float:
    """Seconds that an iteration's messages take."""
    if ranks == 1:
        return 0.0
    return sum(network.seconds(cost_of(shape, ranks, size)) for size in sizes)


def cost_of(shape: str, ranks: int, size: int) -> Cost:
    """What the collectives of an iteration need that carry so many bytes."""
    if shape == "allreduce":
        return allreduce(ranks, size)
    if shape == "rows":
        return exchange(ranks, size)
    (to_server, bytes_there), (back, bytes_back) = reduce(ranks, size), broadcast(ranks, size)
    return Cost(to_server + back, bytes_there + bytes_back)


def iteration(
    computing: Computing,
    batch: int,
    sizes: Sequence[int],
    ranks: int,
    network: Network,
    shape: str = "allreduce",
    cores: int | None = None,
) -> float:
    """Seconds of an iteration. Ranks that share `cores`, of which there are fewer, take turns."""
    turns = max(1.0, ranks / cores) if cores else 1.0
    return computing.seconds(batch / ranks) * turns + communication(sizes, ranks, shape, network)


def stops_paying(computing: Computing, batch: int, sizes: Sequence[int], network: Network) -> tuple[int, float]:
    """The number of machines from which on doubling does not pay, and how many times one machine they are as fast."""
    ranks = 1
    one = now = iteration(computing, batch, sizes, 1, network)
    while 2 * ranks <= batch and now / (doubled := iteration(computing, batch, sizes, 2 * ranks, network)) >= PAYS:
        ranks, now = 2 * ranks, doubled
    return ranks, one / now
