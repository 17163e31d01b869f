"""What operators cost alone: the time of a call, forward and backward, against the size of the array."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from app.training.activation import Activation
from app.training.alone import Alone
from app.training.config import Config

SIZES = (1_000, 4_000, 16_000, 64_000, 250_000)
SECONDS = 0.1
LEAST, MOST = 3, 50
"""How often each operator is run on each array, whatever time there is."""


class Cost(NamedTuple):
    """What one call of an operator takes on an array of so many numbers, in seconds: the quickest of several calls.

    Whatever else a machine does makes a call longer, and none shorter.
    """

    operator: str
    size: int
    forward: float
    backward: float


def operator_costs(
    activations: Sequence[Activation],
    engine: str,
    width: int,
    sizes: Sequence[int] = SIZES,
    seconds: float = SECONDS,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Cost]:
    """Time operators through an engine, on one thread and in turns, in about so many seconds each.

    The arrays have rows of `width` numbers and about as many numbers as `sizes` says. An operator that would take too
    long for the larger ones is left out there. `check` is called wherever one may stop.
    """
    subjects = [Alone(activation, engine, width) for activation in activations]
    numbers = np.random.default_rng(0).standard_normal((max(1, round(max(sizes) / width)), width), np.float32)
    for size, following in zip(sizes, [*sizes[1:], 0], strict=True):
        rows, share = max(1, round(size / width)), seconds * len(subjects) / len(sizes)
        taken = _taken(subjects, numbers, rows, share, check)
        for subject, both in zip(list(subjects), taken, strict=True):
            forward, backward = map(min, zip(*both, strict=True))
            yield Cost(subject.name, rows * width, forward, backward)
            if LEAST * (forward + backward) * following / size > seconds:
                subjects.remove(subject)


def _taken(
    subjects: Sequence[Alone], numbers: np.ndarray, rows: int, seconds: float, check: Callable[[], None]
) -> list[list[tuple[float, float]]]:
    """The seconds that both passes took each time, of each operator.

    They are given other numbers each time, as in training: a processor learns how a function branches on the same ones.
    """
    x, dy = np.array(numbers[:rows]), np.array(numbers[-rows:])
    goes = [subject.on(x, dy) for subject in subjects]
    taken: list[list[tuple[float, float]]] = [[] for _ in subjects]
    until = time.perf_counter() + seconds
    for number in range(MOST):
        if number >= LEAST and time.perf_counter() > until:
            break
        first = number * rows % (len(numbers) - rows + 1)
        for go, times in zip(goes, taken, strict=True):
            check()
            np.copyto(x, numbers[first : first + rows])
            times.append(go())
    return taken


def measure_costs(
    config: Config,
    activations: Sequence[Activation],
    record: Callable[[dict[str, Any]], None],
    warn: Callable[[str], None],
    check: Callable[[], None],
    sizes: Sequence[int] = SIZES,
    seconds: float = SECONDS,
) -> list[Cost]:
    """What the operators of a run cost alone, at the width of its first hidden layer; an event is recorded of each.

    The run has ended well by then: what a user's operator raises now is told, and no reason to call it a failure.
    """
    costs: list[Cost] = []
    if config.costs and config.model.hidden:
        try:
            for cost in operator_costs(activations, config.engine, config.model.hidden[0], sizes, seconds, check):
                record({"event": "cost", **cost._asdict()})
                costs.append(cost)
        except Exception as error:
            warn(f"note: the time of the operators alone was not measured: {error}")
    return costs
