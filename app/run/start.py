"""The first event of a run: the machine, the data, the networks, and the operators' sources."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from app import machine
from app.data import Dataset
from app.run.callbacks import Contestant
from app.run.events import Data, Start


def start_event(
    dataset: Dataset, digest: str, entered: Sequence[Contestant], sources: Mapping[str, str | None]
) -> Start:
    """Return the first event of a run: machine, data with its hash, how the engine runs each network, and the hashes
    of the operators' sources."""
    data = Data(
        origin=dataset.origin.replace(f"{Path.cwd()}{os.sep}", ""),  # reports are forwarded
        verified=dataset.verified,
        sample=dataset.is_sample,
        training=len(dataset.train_images),
        test=len(dataset.test_images if dataset.final_images is None else dataset.final_images),
        shape=list(dataset.image_shape),
        validation=0 if dataset.final_images is None else len(dataset.test_images),
        hash=digest,
    )
    engines = {contestant.operator: contestant.learner.how() for contestant in entered}
    return Start(time.strftime("%Y-%m-%d %H:%M:%S"), machine.describe(), data, engines, dict(sources))
