"""The folder of a run: its configuration, metrics, final weights, summary, and the network for use."""

from __future__ import annotations

import itertools
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from app.errors import AppError
from app.static.model_file import SavedModel, write_model
from app.training.config import Config, dump_config

MODEL = "model"
"""What the names of the files of the network for use begin with."""


class RunFolder:
    """Writes what a run leaves behind; metrics are on disk as soon as they are known."""

    def __init__(self, config: Config, name: str):
        with _writing(Path(config.output or "runs")):
            self.path = _chosen(config.output) if config.output else _new(Path("runs") / f"{name}-{_now()}")
        with _writing(self.path):
            try:
                self._metrics = (self.path / "metrics.jsonl").open("x", encoding="utf-8")
            except FileExistsError:
                raise AppError(f"{self.path} holds a run already; choose another output= or remove it first") from None
            (self.path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
        self._weights: list[Path] = []

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._metrics.close()

    def record(self, event: Mapping[str, Any]) -> None:
        """Append one line to metrics.jsonl. JSON knows no infinity and no NaN: they become null."""
        line = json.dumps({key: _finite(value) for key, value in event.items()}, allow_nan=False)
        with _writing(self.path / "metrics.jsonl"):
            self._metrics.write(line + "\n")
            self._metrics.flush()

    def save_weights(self, operator: str, weights: Mapping[str, np.ndarray]) -> None:
        """Write the weights of one operator's network."""
        from safetensors.numpy import save  # imported late: needed once, at the end

        short = re.sub(r"[^\w.]+", "-", operator)[-60:].strip("-")
        names = (self.path / f"weights-{short}{end}.safetensors" for end in _endings())
        file = next(name for name in names if name not in self._weights)
        with _writing(file):
            file.write_bytes(save(dict(weights), metadata={"operator": operator}))
        self._weights.append(file)

    def save_model(self, model: SavedModel) -> None:
        """Write a network for use, as `python -m app predict` reads it."""
        write_model(self.path / MODEL, model)

    def save_summary(self, text: str) -> None:
        """Write the summary as it is printed."""
        with _writing(self.path / "summary.txt"):
            (self.path / "summary.txt").write_text(text + "\n", encoding="utf-8")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """What the operating system refuses, as an error that names the file."""
    try:
        yield
    except OSError as error:
        raise AppError(f"{error.filename or path} cannot be written: {error.strerror or error}") from error


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _now() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def _endings() -> Iterator[str]:
    """What tells names apart that would be the same: nothing, -2, -3 …"""
    return ("" if number == 1 else f"-{number}" for number in itertools.count(1))


def _chosen(output: str) -> Path:
    """The folder that the user asked for, which may be there."""
    path = Path(output).expanduser()
    if path.exists() and not path.is_dir():
        raise AppError(f"{path} is a file, and output= names a folder")
    path.mkdir(parents=True, exist_ok=True)
    return path


def _new(path: Path) -> Path:
    """A folder of its own: the path, or with a number after it when two runs begin in one second."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending in _endings():
        candidate = path.with_name(path.name + ending)
        try:
            candidate.mkdir()
        except FileExistsError:
            continue
        return candidate
    raise AssertionError("the endings never end")
