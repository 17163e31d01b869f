"""Outcomes of runs that never were."""

import numpy as np

from app.run import comparison
from app.run.events import Epoch
from app.run.training import Trained


def outcome(
    name,
    wrong,
    seconds=None,
    images=1000,
    weights="",
    how="",
):
    """An operator that names these images wrongly, and takes so many seconds for each epoch, with each seed."""
    right = []
    for of_seed in wrong:
        right.append(np.ones(images, bool))
        right[-1][list(of_seed)] = False
    times = seconds or [[1.0, 1.0] for _ in wrong]
    trained = []
    for of_seed, r in zip(times, right, strict=True):
        epochs = [Epoch(name, number, s, float(r.mean()), 0.5) for number, s in enumerate(of_seed)]
        trained.append(Trained(name, how, epochs, None, r, weights or name, epochs, {}, None))
    return name, trained


def differences(outcomes):
    return comparison.differences(dict(outcomes))


def compare(outcomes, *costs):
    return comparison.compare(dict(outcomes), range(len(outcomes[0][1])), costs)
