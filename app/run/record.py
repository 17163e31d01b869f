"""What a run has recorded, read from its folder. The terminal, the report, notebooks, `predict` and the demo show it.

Reading a folder runs no code from it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from app.errors import FileError, MissingFileError
from app.run import events
from app.run.checkpoints import CHECKPOINT
from app.run.config import CompareConfig, Config, load_kept_config, operators_of
from app.run.descriptions import Description, read_descriptions
from app.run.events import METRICS, End, Epoch, Event, Iteration, Start, Tested
from app.run.folder import CONFIG, SUMMARY, require_folder, seed_folder
from app.run.predictions import Predictions, read_predictions
from app.run.weights import Weights, hash_of, read_weights

E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class RunRecord:
    """One run: the networks of several operators, trained with one seed."""

    folder: Path
    config: Config
    events: Sequence[Event]

    def of(self, kind: type[E], operator: str | None = None) -> list[E]:
        """The events of a kind, of one operator or of all."""
        of_kind = [event for event in self.events if isinstance(event, kind)]
        return [event for event in of_kind if operator in (None, getattr(event, "operator", None))]

    @property
    def operators(self) -> list[str]:
        """The operators, in the order of the configuration."""
        return operators_of(self.config)

    @property
    def start(self) -> Start | None:
        """The machine and the data; None if the run ended before training."""
        return next(iter(self.of(Start)), None)

    @property
    def ended(self) -> bool:
        """Whether the metrics are whole, with the line that a run writes last."""
        return bool(self.of(End))

    @property
    def weight_hashes(self) -> Mapping[str, str]:
        """The hash of each operator's trained weights; empty if the run has not ended."""
        return self.of(End)[-1].weights if self.ended else {}

    # Accuracy and speed

    @property
    def tested_on(self) -> str:
        """The name of the images that networks are tested on after every epoch: "test" or "validation"."""
        return "validation" if self.config.data.validation else "test"

    def iterations(self, operator: str) -> list[Iteration]:
        """The losses and accuracies of single batches."""
        return self.of(Iteration, operator)

    def epochs(self, operator: str) -> list[Epoch]:
        """The epochs that an operator has finished."""
        return self.of(Epoch, operator)

    def last(self, operator: str) -> Epoch | None:
        """The last epoch that an operator has finished. Operators are compared by its accuracy."""
        return next(reversed(self.epochs(operator)), None)

    def accuracy(self, operator: str) -> float | None:
        """The accuracy by which operators are compared: on the validation images, or without them on the test
        images."""
        last = self.last(operator)
        return None if last is None else last.test_accuracy

    def tested(self, operator: str) -> Tested | None:
        """The accuracy and loss on the test images; with validation images they are classified once, at the end."""
        last = self.last(operator)
        if self.tested_on == "test" and last is not None:
            return Tested(operator, last.test_accuracy, last.test_loss)
        return next(reversed(self.of(Tested, operator)), None)

    def test_accuracy(self, operator: str) -> float | None:
        """The accuracy on the test images."""
        return None if (tested := self.tested(operator)) is None else tested.accuracy

    def test_loss(self, operator: str) -> float | None:
        """The loss on the test images."""
        return None if (tested := self.tested(operator)) is None else tested.loss

    def timed(self, operator: str) -> list[Epoch]:
        """The epochs whose times can be compared, as no other training ran at the same time."""
        return [epoch for epoch in self.epochs(operator) if epoch.alone]

    def seconds(self, operator: str) -> float | None:
        """The median time of an epoch; None if no time can be compared."""
        times = [epoch.seconds for epoch in self.timed(operator)]
        return statistics.median(times) if times else None

    @property
    def complete(self) -> bool:
        """Whether all operators have finished all epochs."""
        return all(len(self.epochs(operator)) == self.config.train.epochs for operator in self.operators)

    # Other files of the folder

    @cached_property
    def weights(self) -> dict[str, Weights]:
        """The trained weights of each operator's network, which are checked to be those that the run ended with."""
        weights = read_weights(self.folder)
        for operator, one in weights.items():
            if self.weight_hashes.get(operator, "") not in ("", hash_of(one.arrays)):
                raise FileError(
                    f"{one.file} has other weights than the run ended with, of which {METRICS} has the hash; restore "
                    "the file of this run, or train again"
                )
        return weights

    @cached_property
    def predictions(self) -> Predictions | None:
        """The predictions on the test images; None if none are stored."""
        return read_predictions(self.folder) if self.of(Epoch) else None

    @cached_property
    def descriptions(self) -> Mapping[str, Description]:
        """The source, curve and inputs of each operator."""
        return read_descriptions(self.folder)

    @property
    def image(self) -> tuple[int, ...]:
        """The rows and columns of an image."""
        return (28, 28) if self.start is None else tuple(self.start.data.shape)

    @property
    def images(self) -> int:
        """The number of images in the accuracy by which operators are compared."""
        return 10_000 if self.start is None else self.start.data.validation or self.start.data.test


def read_run(folder: Path) -> RunRecord:
    """Read the record of the run in a folder."""
    run_events = list(events.read(folder))
    return RunRecord(folder, load_kept_config(folder / CONFIG), run_events)


def read_runs(folder: Path) -> list[RunRecord]:
    """Read the run in a folder, or the finished runs of the comparison in it, in the order of their seeds. There is at
    least one."""
    require_folder(folder)
    if not (folder / CONFIG).is_file():
        raise MissingFileError(f"{folder} is not the folder of a run: it has no {CONFIG}")
    config = load_kept_config(folder / CONFIG)
    if not isinstance(config, CompareConfig):
        return [read_run(folder)]
    runs = [read_run(run) for run in runs_of(folder, config) if is_finished(run)]
    if not runs:
        raise MissingFileError(f"{folder} has no finished run: opsmith compare --resume {folder}")
    return runs


def runs_of(folder: Path, config: CompareConfig) -> list[Path]:
    """The folder of each run of a comparison: one for each seed."""
    return [folder / seed_folder(seed) for seed in range(config.seed, config.seed + config.seeds)]


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder has come to its end, so that there is nothing to resume."""
    return (folder / SUMMARY).exists() and not (folder / CHECKPOINT).exists()
