"""Outcomes of runs that never were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.run.comparison import Outcome
from app.run.events import Epoch


def outcome(
    name: str,
    wrong: Sequence[Sequence[int]],
    seconds: Sequence[Sequence[float]] | None = None,
    images: int = 1000,
    weights: str = "",
    how: str = "",
) -> Outcome:
    """An operator that names these images wrongly, and takes so many seconds for each epoch, with each seed."""
    right = []
    for of_seed in wrong:
        right.append(np.ones(images, bool))
        right[-1][list(of_seed)] = False
    times = seconds or [[1.0, 1.0] for _ in wrong]
    accuracies = [float(r.mean()) for r in right]
    pairs = zip(times, accuracies, strict=True)
    epochs = [[Epoch(name, number, s, a, 0.5) for number, s in enumerate(of_seed)] for of_seed, a in pairs]
    return Outcome(name, how, epochs, right, [weights or name] * len(right), epochs)
