"""Three and four ranks train as one process does, on however few cores: five epochs, both shapes, uneven shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import training_on_ranks
from training_on_ranks import Job

FIVE = ("train.epochs=5", "model.activation=custom.tanh", "train.eval_batch_size=101")
JOBS = [  # of a smooth operator: which side of a kink a number is on is a matter of rounding
    Job([*FIVE, "dist.shape=allreduce"], images=10_000),
    Job([*FIVE, "dist.shape=pserver", "train.optimizer=momentum", "train.learning_rate=0.002"], images=5_003),
    Job([*FIVE, "dist.shape=allreduce", "engine=reference", "train.batch_size=3", "model.hidden=[9]"], images=50),
]
_worst: dict[int, float] = {}


@pytest.mark.parametrize("ranks", [3, 4])
def test_losses_are_those_of_one_process(ranks: int, tmp_path: Path, figure: Callable[[str, str], None]):
    for job, many in zip(JOBS, training_on_ranks.train_on_ranks(ranks, JOBS, tmp_path), strict=True):
        one = training_on_ranks.train(replace(job, settings=[*job.settings, "engine=reference"]), ranks=False)
        apart = np.abs(np.array(many.losses) / np.array(one.losses) - 1).max()
        assert apart < 1e-5
        # among the figures are means of numbers from -1 to 1, of which cancellation leaves fewer digits than of losses
        np.testing.assert_allclose(many.figures(), one.figures(), rtol=1e-5, atol=1e-5)
        _worst[ranks] = max(_worst.get(ranks, 0.0), float(apart))
    figure("ranks apart", ", ".join(f"{apart:.0e} at {n} ranks" for n, apart in sorted(_worst.items())))
