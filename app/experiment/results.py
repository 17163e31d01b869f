"""The results of `opsmith.train` and `opsmith.compare`: metrics, weights and networks. They can be pickled."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from app.display import Displayed
from app.errors import AppError, ConfigError, MissingFileError, OperatorError, ShapeError
from app.nn import Layer
from app.run.comparison import Difference
from app.run.config import Config
from app.run.events import Epoch, finite
from app.run.folder import NO_SOURCES
from app.run.network import Activation, Network, every_operator, find_all, pixels_of
from app.run.resume import check_sources, sources_of
from app.run.run import Result
from app.run.statistics import Estimate, over_units
from app.tensor import Tensor, no_grad


class TrainedOperator:
    """The result of one operator: its metrics and its trained network."""

    _sources: Mapping[str, str | None] = NO_SOURCES
    """The hashes of the operators' sources; empty in pickles of earlier releases."""

    def __init__(self, activation: Activation, result: Result):
        self.operator = activation.name
        self.epochs = result.epochs.get(activation.name, [])
        """The epochs of each finished seed."""
        self.tested = result.tested.get(activation.name, [])
        """The test accuracy of each seed, if epochs were tested on validation images."""
        self.weights = result.weights.get(activation.name, {})
        """The weights of the first seed, by their paths in the network."""
        used = every_operator([activation])
        self.source = "\n".join(one.source for one in used if one is activation or not one.has_name)
        """The source of the user's function or class, and of those of layers that cannot be imported; '' if it cannot
        be read."""
        self.config, self.image = result.config, result.image
        self.homes = {one.name: os.path.abspath(one.home) for one in used if one.home}
        """The user's files that define the operator and those of single layers, by operator."""
        self._sources = sources_of([activation])
        self._activation: Activation | None = activation
        self._unnamed = [one.name for one in used if not one.has_name]
        self._network: Layer | None = None

    @property
    def accuracies(self) -> list[float]:
        """The final test accuracy of each seed."""
        return self.tested or [epochs[-1].test_accuracy for epochs in self.epochs if epochs]

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics: means over the seeds, and each epoch."""
        if not any(self.epochs):
            return {"epochs": []}
        last = [epochs[-1] for epochs in self.epochs if epochs]
        validated = bool(self.config.data.validation)
        figures: dict[str, Any] = {"test_accuracy": statistics.fmean(self.accuracies)}
        if validated:
            figures["validation_accuracy"] = statistics.fmean(epoch.test_accuracy for epoch in last)
        losses = [epoch.test_loss for epoch in last if epoch.test_loss is not None]
        figures["validation_loss" if validated else "test_loss"] = (
            statistics.fmean(losses) if len(losses) == len(last) else None
        )
        figures["seconds_per_epoch"] = statistics.median(e.seconds for epochs in self.epochs for e in epochs)
        figures["test_accuracies"] = self.accuracies
        figures["epochs"] = [_plain(epoch) for epochs in self.epochs for epoch in epochs]
        return figures

    @property
    def network(self) -> Layer:
        """The trained network, a Layer that gives the scores of the ten digits."""
        if self._network is None:
            network = Network(self.config.model, self._found(), self.image, self.config.data.pixel_range)
            network.set_state_dict(self.weights)
            network.eval()
            self._network = network
        return self._network

    def predict(self, images: npt.ArrayLike) -> np.ndarray | int:
        """The digits on images of bytes: rows of pixels, or rows and columns; of one image a single digit."""
        pixels = np.asarray(images)
        size = pixels_of(self.image)
        is_whole = pixels.shape[-1:] == (size,) or pixels.shape[-2:] == self.image
        if pixels.dtype != np.uint8 or pixels.size == 0 or not is_whole:
            raise ShapeError(
                f"predict takes images of {size} bytes each (uint8, 0 to 255, light on dark), as rows of {size} pixels "
                f"or {' x '.join(map(str, self.image))}, found {pixels.dtype}{list(pixels.shape)}"
            )
        with no_grad():
            scores = self.network(Tensor(np.ascontiguousarray(pixels.reshape(-1, size)))).numpy()
        if unknown := int(np.isnan(scores).any(axis=1).sum()):
            raise OperatorError(
                f"the scores of {self.operator}'s network are NaN for {unknown} of {len(scores)} images, as after a "
                "training that diverged, so it predicts nothing; its `network` gives the scores"
            )
        digits = scores.argmax(axis=1)
        return int(digits[0]) if pixels.shape in ((size,), self.image) else digits

    def _found(self) -> Activation:
        """Return the operator object, or after unpickling the operator of that name."""
        if self._activation is None:
            self.use()
        assert self._activation is not None
        return self._activation

    def use(self, operator: Any = None, **of_layers: Any) -> None:
        """Set the operator, and by name those of single layers, defined again, after the result was unpickled in
        another process."""
        passed = {self.operator: operator, **of_layers}
        given = [Activation(name, getattr(one, "apply", one)) for name, one in passed.items() if one is not None]
        lost = [name for name in self._unnamed if passed.get(name) is None]
        if lost:
            words = (name if name == self.operator else f"{name}={name}" for name in self._unnamed)
            raise OperatorError(
                f"{', '.join(lost)} cannot be imported, because it was defined in a notebook's cell or similar, and a "
                f"pickle holds only its source. Define it again (`source` has its text), and pass it: "
                f"result[{self.operator!r}].use({', '.join(words)})"
            )
        (found,) = find_all([self.operator], self.config.model, given, self.homes)
        now = {name: source for name, source in sources_of([found]).items() if passed.get(name) is None}
        check_sources(self._sources, now, "its training")
        self._activation = found
        self._network = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_activation": None, "_network": None}

    def __repr__(self) -> str:
        if not any(self.epochs):
            return f"<{self.operator}: no epoch was finished>"
        return f"<{self.operator}: test accuracy {statistics.fmean(self.accuracies):.4f}>"


def _plain(epoch: Epoch) -> dict[str, Any]:
    names = ("seed", "epoch", "seconds", "test_accuracy", "test_loss")
    return {name: getattr(epoch, name) for name in names if getattr(epoch, name) is not None}


class RunResult(Displayed):
    """The base of results. `result["swish"]` is the part of one operator; the file name of an operator may be
    omitted."""

    def __init__(self, result: Result, activations: Sequence[Activation]):
        self.config: Config = result.config
        self.folder: Path | None = result.folder
        """The folder of the run."""
        self.comparison = result.comparison
        """What a comparison of finished seeds found; None for other runs."""
        self._text, self._data = result.text, result.data
        self._of = {a.name: TrainedOperator(a, result) for a in activations}

    @property
    def differences(self) -> list[Difference]:
        """How each operator differs from the first; only for comparisons."""
        return [] if self.comparison is None else self.comparison.differences

    @property
    def operators(self) -> list[str]:
        """The names of the operators, in the order given."""
        return list(self._of)

    @property
    def epochs(self) -> dict[str, list[list[Epoch]]]:
        """For each operator, and each seed that was finished, its epochs."""
        return {name: part.epochs for name, part in self._of.items()}

    def __getitem__(self, operator: str) -> TrainedOperator:
        short = [name for name in self._of if name.rpartition(":")[2] == operator]
        if operator in self._of or len(short) == 1:
            return self._of[operator if operator in self._of else short[0]]
        raise ConfigError(f"there is no {operator!r} in this run; there are {', '.join(self._of)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row per operator, the most accurate first, for pandas.DataFrame."""
        rows = [_row(part) for part in self._of.values()]
        return sorted(rows, key=lambda row: -(row.get("test_accuracy") or 0.0))

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as data that can be written as JSON."""
        data = {key: value for key, value in self._data.items() if key != "event"}
        folder = None if self.folder is None else str(self.folder)
        metrics = {name: part.metrics for name, part in self._of.items()}
        whole = {**data, "metrics": metrics, "config": msgspec.to_builtins(self.config), "folder": folder}
        return {key: finite(value) for key, value in whole.items()}

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report, a self-contained page, to a file, by default `report.html`; return the file."""
        from app.files import refuse_foreign, without_tilde, write_whole
        from app.report.page import MARK, page
        from app.report.record import read

        if self.folder is None or not self.folder.is_dir():
            raise MissingFileError(f"the report is made from the run's folder, but {self.folder} no longer exists")
        file = without_tilde("report.html" if path is None else path)
        if path is None:
            refuse_foreign(file, MARK, 1 << 20, f"write report({str(file)!r}) to replace it, or name another")
        try:
            write_whole(file, page(read(self.folder)).encode())
        except OSError as error:
            raise AppError(f"{file} cannot be written: {error.strerror or error}") from error
        return file

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def _row(part: TrainedOperator) -> dict[str, Any]:
    figures = {key: value for key, value in part.metrics.items() if not isinstance(value, list)}
    spread = interval(part.metrics.get("test_accuracies", []))
    ends = {} if spread is None else {"low": spread.low, "high": spread.high}
    return {"operator": part.operator, **figures, **ends}


def interval(values: Sequence[float]) -> Estimate | None:
    """The 95 % interval of the mean over seeds; None with fewer than two seeds."""
    return over_units(values) if len(values) > 1 else None


class TrainingResult(RunResult):
    """The result of `opsmith.train`. Metrics and network are those of the operator; the baseline's are in
    `result[name]`."""

    @property
    def _first(self) -> TrainedOperator:
        return next(iter(self._of.values()))

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the operator: test accuracy, loss, seconds per epoch, and each epoch."""
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


class ComparisonResult(RunResult):
    """The result of `opsmith.compare`: ranked operators with intervals, and verdicts on how they differ."""

    @property
    def verdicts(self) -> list[str]:
        """Sentences on how each operator differs from the first, and how this was tested."""
        return list(self._data.get("verdicts", []))
