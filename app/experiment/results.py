"""The result of `opsmith.train` and `opsmith.compare`: what a folder has recorded, with its networks."""

from __future__ import annotations

import os
import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from app.display import Displayed
from app.errors import AppError, ConfigError, FileError, MissingFileError, OperatorError, ShapeError
from app.nn import Layer
from app.run.activation import Activation
from app.run.comparison import Comparison, Difference, compare_runs
from app.run.config import CompareConfig, load_kept_config
from app.run.events import Epoch, finite
from app.run.folder import CONFIG
from app.run.network import Network, pixels_of, trained_network
from app.run.record import read_runs
from app.run.resume import check_sources, operators_again, source_hashes
from app.run.statistics import Estimate, paired_t
from app.run.summary import comparison, comparison_data, outcome, summary
from app.run.weights import WEIGHTS, Weights


class Result(Displayed):
    """The run in a folder, or the runs of a comparison, one for each seed.

    `result["swish"]` is the part of one operator; the file name of an operator may be omitted. Metrics, weights and
    network of the result itself are those of the first operator. Networks are those of the first seed.
    """

    def __init__(
        self,
        folder: Path,
        objects: Sequence[Activation] = (),
        custom_ops: Sequence[str] = (),
        accept_changed: Collection[str] = (),
    ) -> None:
        """`objects` are operators; files with others are executed only if `custom_ops` names them. Operators
        whose source has changed are refused, but for those of `accept_changed`."""
        self.folder = folder.absolute()
        """The folder of the run or the comparison."""
        self.runs = [replace(run, folder=run.folder.absolute()) for run in read_runs(folder)]
        """The record of each run."""
        self.config = load_kept_config(folder / CONFIG)
        self._objects, self._custom_ops, self._accept_changed = objects, custom_ops, accept_changed
        self._parts = {name: OperatorResult(name, self) for name in self.runs[0].operators}

    @cached_property
    def comparison(self) -> Comparison | None:
        """What the runs of a comparison show; None for a single run."""
        config = self.config
        return compare_runs(self.runs, config.seeds) if isinstance(config, CompareConfig) else None

    @property
    def differences(self) -> list[Difference]:
        """How each operator differs from the first; only for comparisons."""
        return [] if self.comparison is None else self.comparison.differences

    @property
    def verdicts(self) -> list[str]:
        """Sentences on how each operator of a comparison differs from the first, and how this was tested."""
        return list(self._data().get("verdicts", []))

    @property
    def operators(self) -> list[str]:
        """The names of the operators, in the order given."""
        return list(self._parts)

    @cached_property
    def activations(self) -> dict[str, Activation]:
        """The operators by name. A file is executed only if the user named it."""
        config = self.runs[0].config
        operators = operators_again(self.folder, config, self._custom_ops, self._objects, "opsmith.open_run")
        start = self.runs[0].start
        before = {} if start is None else start.sources
        before = {name: source for name, source in before.items() if name not in self._accept_changed}
        check_sources(before, source_hashes(operators), f"the run in {self.folder} trained with it")
        return {activation.name: activation for activation in operators}

    @property
    def epochs(self) -> dict[str, list[list[Epoch]]]:
        """The epochs of each operator for each seed."""
        return {name: part.epochs for name, part in self._parts.items()}

    def __getitem__(self, operator: str) -> OperatorResult:
        short = [name for name in self._parts if name.rpartition(":")[2] == operator]
        if operator in self._parts or len(short) == 1:
            return self._parts[operator if operator in self._parts else short[0]]
        raise ConfigError(f"there is no {operator!r} in this run; there are {', '.join(self._parts)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row per operator, the most accurate first, for pandas.DataFrame."""
        rows = [_row(part) for part in self._parts.values()]
        return sorted(rows, key=lambda row: -(row.get("test_accuracy") or 0.0))

    def _data(self) -> dict[str, Any]:
        return outcome(self.runs[0]) if self.comparison is None else comparison_data(self.comparison)

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as data that can be written as JSON."""
        data = {key: value for key, value in self._data().items() if key != "event"}
        metrics = {name: part.metrics for name, part in self._parts.items()}
        whole = {**data, "metrics": metrics, "config": msgspec.to_builtins(self.config), "folder": str(self.folder)}
        return {key: finite(value) for key, value in whole.items()}

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report, a self-contained page, to a file, by default `report.html`; return the file."""
        from app.files import refuse_foreign, without_tilde, write_whole
        from app.report.page import MARK, page

        if not self.folder.is_dir():
            raise MissingFileError(f"the report is made from the run's folder, but {self.folder} no longer exists")
        file = without_tilde("report.html" if path is None else path)
        if path is None:
            refuse_foreign(file, MARK, 1 << 20, f"write report({str(file)!r}) to replace it, or name another")
        try:
            write_whole(file, page(self.runs, self.comparison).encode())
        except OSError as error:
            raise AppError(f"{file} cannot be written: {error.strerror or error}") from error
        return file

    def __str__(self) -> str:
        return summary(self.runs[0]) if self.comparison is None else comparison(self.comparison)

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return Result, (self.folder, (), self._custom_ops)  # a result is its folder

    @property
    def _first(self) -> OperatorResult:
        return next(iter(self._parts.values()))

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the first operator: test accuracy, loss, seconds per epoch, and each epoch."""
        return self._first.metrics

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The trained weights by their paths in the network."""
        return self._first.weights

    @property
    def network(self) -> Layer:
        """The trained network, a Layer that gives the scores of the ten digits."""
        return self._first.network

    def predict(self, images: npt.ArrayLike) -> np.ndarray | int:
        """The digits on images of bytes: rows of pixels, or rows and columns; of one image a single digit."""
        return self._first.predict(images)


class OperatorResult:
    """One operator of a result: its metrics and its trained network."""

    def __init__(self, operator: str, result: Result):
        self.operator = operator
        self._result = result

    @property
    def epochs(self) -> list[list[Epoch]]:
        """The epochs of each seed."""
        return [run.epochs(self.operator) for run in self._result.runs]

    @property
    def accuracies(self) -> list[float]:
        """The final test accuracy of each seed."""
        accuracies = [run.test_accuracy(self.operator) for run in self._result.runs]
        return [accuracy for accuracy in accuracies if accuracy is not None]

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics: means over the seeds, and each epoch."""
        runs = self._result.runs
        last = [epoch for run in runs if (epoch := run.last(self.operator)) is not None]
        if not last:
            return {"epochs": []}
        validated = runs[0].tested_on == "validation"
        figures: dict[str, Any] = {"test_accuracy": statistics.fmean(self.accuracies) if self.accuracies else None}
        if validated:
            figures["validation_accuracy"] = statistics.fmean(epoch.test_accuracy for epoch in last)
        losses = [epoch.test_loss for epoch in last if epoch.test_loss is not None]
        mean = statistics.fmean(losses) if len(losses) == len(last) else None
        figures["validation_loss" if validated else "test_loss"] = mean
        times = [epoch.seconds for run in runs for epoch in run.timed(self.operator)]
        figures["seconds_per_epoch"] = statistics.median(times) if times else None
        figures["test_accuracies"] = self.accuracies
        figures["epochs"] = [_plain(epoch, run.config.seed) for run in runs for epoch in run.epochs(self.operator)]
        return figures

    @cached_property
    def weights(self) -> dict[str, np.ndarray]:
        """The weights of the first seed, by their paths in the network."""
        return dict(self._stored.arrays)

    @property
    def _stored(self) -> Weights:
        run = self._result.runs[0]
        if self.operator not in run.weights:
            raise MissingFileError(f"{run.folder} has no {WEIGHTS} of {self.operator}: the run saved no network")
        return run.weights[self.operator]

    @cached_property
    def network(self) -> Network:
        """The trained network, a Layer that gives the scores of the ten digits."""
        run, activation = self._result.runs[0], self._result.activations[self.operator]
        network = trained_network(run.config, activation, run.image)
        _check_weights(self._stored, {path: tuple(p.shape) for path, p in network.named_parameters()})
        network.set_state_dict(self.weights)
        return network

    def predict(self, images: npt.ArrayLike) -> np.ndarray | int:
        """The digits on images of bytes: rows of pixels, or rows and columns; of one image a single digit."""
        pixels, image = np.asarray(images), self._result.runs[0].image
        size = pixels_of(image)
        is_whole = pixels.shape[-1:] == (size,) or pixels.shape[-2:] == image
        if pixels.dtype != np.uint8 or pixels.size == 0 or not is_whole:
            raise ShapeError(
                f"predict takes images of {size} bytes each (uint8, 0 to 255, light on dark), as rows of {size} pixels "
                f"or {' x '.join(map(str, image))}, found {pixels.dtype}{list(pixels.shape)}"
            )
        scores = self.network.scores(np.ascontiguousarray(pixels.reshape(-1, size)))
        if unknown := int(np.isnan(scores).any(axis=1).sum()):
            raise OperatorError(
                f"the scores of {self.operator}'s network are NaN for {unknown} of {len(scores)} images, as after a "
                "training that diverged, so it predicts nothing; its `network` gives the scores"
            )
        digits = scores.argmax(axis=1)
        return int(digits[0]) if pixels.shape in ((size,), image) else digits

    def __repr__(self) -> str:
        if not self.accuracies:
            return f"<{self.operator}: not tested>"
        return f"<{self.operator}: test accuracy {statistics.fmean(self.accuracies):.4f}>"


def _check_weights(weights: Weights, shapes: dict[str, tuple[int, ...]]) -> None:
    """Check that a weights file fits the configuration beside it."""
    file, arrays = weights.file, weights.arrays
    for name, shape in shapes.items():
        if name not in arrays:
            raise FileError(f"{file} has no {name}, which the network in config.yaml has; it has {', '.join(arrays)}")
        if arrays[name].shape != shape or arrays[name].dtype != np.float32:
            kind = f"{arrays[name].dtype}{list(arrays[name].shape)}"
            raise FileError(
                f"{file}: {name} is {kind}, and for this network and its pictures it is float32{list(shape)}"
            )


def _plain(epoch: Epoch, seed: int) -> dict[str, Any]:
    values = {name: getattr(epoch, name) for name in ("epoch", "seconds", "test_accuracy", "test_loss")}
    return {"seed": seed} | {name: value for name, value in values.items() if value is not None}


def _row(part: OperatorResult) -> dict[str, Any]:
    figures = {key: value for key, value in part.metrics.items() if not isinstance(value, list)}
    spread = interval(part.accuracies)
    ends = {} if spread is None else {"low": spread.low, "high": spread.high}
    return {"operator": part.operator, **figures, **ends}


def interval(values: Sequence[float]) -> Estimate | None:
    """The 95 % interval of the mean over seeds; None with fewer than two seeds."""
    return paired_t(values) if len(values) > 1 else None
