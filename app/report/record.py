"""The record of a run, read from its folder without executing code or downloading data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import FileError
from app.files import LARGEST, read_file
from app.run import answers, comparison, events, profiles
from app.run.answers import Answers
from app.run.comparison import Comparison
from app.run.config import Config, load_kept_config, operators_of
from app.run.folder import CONFIG, read_weights
from app.run.profiles import Profile

FIRST_LAYER = "layers.0.weight"


@dataclass
class Record:
    """The contents of a run's folder."""

    folder: Path
    config: Config
    config_text: str
    start: events.Start | None = None
    checked: list[events.Checked] = field(default_factory=list)
    nonfinite: list[events.Nonfinite] = field(default_factory=list)
    iterations: list[events.Iteration] = field(default_factory=list)
    epochs: list[events.Epoch] = field(default_factory=list)
    tested: list[events.Tested] = field(default_factory=list)
    costs: list[events.Cost] = field(default_factory=list)
    answers: Answers | None = None
    first_layers: dict[str, np.ndarray] = field(default_factory=dict)
    """The first-layer weights of each operator's network, from pixels (rows) to units (columns)."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    comparison: Comparison | None = None
    """The result of `compare`; None for a run with one seed."""

    @property
    def operators(self) -> list[str]:
        """The operators in training order, also those whose training had not begun."""
        named = getattr(self.config, "operators", None) or operators_of(self.config)
        begun = (event.operator for event in self.iterations)
        return list(dict.fromkeys([*named, *begun, *(event.operator for event in self.epochs)]))

    @property
    def tested_on(self) -> str:
        """The name of the images that networks were tested on after every epoch: "test" or "validation"."""
        return "validation" if self.config.data.validation else "test"

    def test_accuracies(self, operator: str) -> list[float]:
        """The accuracies on the test images, if they were measured only at the end."""
        return [event.accuracy for event in self.tested if event.operator == operator]

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return max(1, len({event.seed for event in self.epochs}))

    def epochs_of(self, operator: str) -> list[events.Epoch]:
        """The epochs that an operator finished, with every seed."""
        return [epoch for epoch in self.epochs if epoch.operator == operator]

    def finished(self, operator: str) -> int:
        """The number of epochs that an operator finished, for the furthest seed."""
        return max((epoch.epoch + 1 for epoch in self.epochs_of(operator)), default=0)

    @property
    def unfinished(self) -> bool:
        """Whether an operator has unfinished epochs, for the furthest seed."""
        return any(self.finished(operator) < self.config.train.epochs for operator in self.operators)

    def last(self, operator: str) -> list[events.Epoch]:
        """The last epoch of an operator with each seed, except seeds that did not come as far as others."""
        finished = self.finished(operator)
        return list({epoch.seed: epoch for epoch in self.epochs_of(operator) if epoch.epoch + 1 == finished}.values())


def read(folder: Path) -> Record:
    """Read the record of the run in a folder."""
    record = read_events(folder)
    if record.epochs:  # the answers and weights of a network that was hardly trained say nothing
        record.answers = answers.read(folder)
        record.first_layers = _first_layers(folder, record.config)
    record.profiles = profiles.read(folder)
    record.comparison = comparison.read(folder)
    return record


def read_events(folder: Path) -> Record:
    """Read only the configuration and the metrics of a run, which is fast."""
    found = list(events.read(folder))
    path = folder / CONFIG
    config = load_kept_config(path)
    record = Record(folder, config, read_file(path, LARGEST["configuration"], links=False).decode("utf-8-sig"))
    lists: dict[type, list[Any]] = {
        events.Checked: record.checked,
        events.Nonfinite: record.nonfinite,
        events.Iteration: record.iterations,
        events.Epoch: record.epochs,
        events.Tested: record.tested,
        events.Cost: record.costs,
    }
    for event in found:
        if isinstance(event, events.Start):
            record.start = event  # for a resumed run, the last one is valid
        elif not isinstance(event, events.End):
            lists[type(event)].append(event)
    return record


def _first_layers(folder: Path, config: Config) -> dict[str, np.ndarray]:
    found = {}
    for operator, weights in read_weights(folder).items():
        layer = weights.arrays.get(FIRST_LAYER)
        if layer is None or (layer.ndim != 2 and config.model.layers is None) or layer.dtype.kind != "f":
            shape = "missing" if layer is None else f"{layer.dtype}{list(layer.shape)}"
            raise FileError(f"{weights.file}: {FIRST_LAYER} is {shape}, expected a float matrix")
        found[operator] = layer
    return found


def over_seeds(
    events: Iterable[Any], x: Callable[[Any], float], y: Callable[[Any], float | None]
) -> list[tuple[float, float, float, float]]:
    """Return x, and the mean, minimum and maximum of y over the seeds, for each x; NaN if y is NaN."""
    at: dict[float, list[float]] = defaultdict(list)
    for event in events:
        value = y(event)
        at[x(event)].append(np.nan if value is None else value)
    return [(key, *_mean_and_ends(at[key])) for key in sorted(at)]


def _mean_and_ends(values: Sequence[float]) -> tuple[float, float, float]:
    return sum(values) / len(values), min(values), max(values)
