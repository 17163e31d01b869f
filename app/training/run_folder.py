"""The folder of a run: its configuration, metrics, final weights and summary."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from app.errors import AppError
from app.training.config import Config, dump_config


class RunFolder:
    """Writes what a run leaves behind; metrics are on disk as soon as they are known."""

    def __init__(self, config: Config, name: str):
        self.path = Path(config.output) if config.output else _unused(Path("runs") / f"{name}-{_now()}")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if (self.path / "metrics.jsonl").exists():
                raise AppError(f"{self.path} holds a run already; choose another output= or remove it first")
            (self.path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
            self._metrics = (self.path / "metrics.jsonl").open("w", encoding="utf-8")
        except OSError as error:
            raise AppError(f"the run's folder {self.path} cannot be written: {error.strerror}") from error

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._metrics.close()

    def record(self, event: Mapping[str, Any]) -> None:
        """Append one line to metrics.jsonl."""
        try:
            self._metrics.write(json.dumps(event) + "\n")
            self._metrics.flush()
        except OSError as error:
            raise AppError(f"{self.path / 'metrics.jsonl'} cannot be written: {error.strerror}") from error

    def save_weights(self, operator: str, weights: Mapping[str, np.ndarray]) -> None:
        """Write the weights of one operator's network."""
        from safetensors.numpy import save_file  # imported late: needed once, at the end

        file = self.path / f"weights-{re.sub(r'[^A-Za-z0-9_.]+', '-', operator)}.safetensors"
        try:
            save_file(dict(weights), file, metadata={"operator": operator})
        except OSError as error:
            raise AppError(f"{file} cannot be written: {error.strerror}") from error

    def save_summary(self, text: str) -> None:
        """Write the summary as it was printed."""
        (self.path / "summary.txt").write_text(text + "\n", encoding="utf-8")


def _now() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def _unused(path: Path) -> Path:
    """The path, or with a number after it when two runs begin in one second."""
    candidate, number = path, 2
    while candidate.exists():
        candidate, number = path.with_name(f"{path.name}-{number}"), number + 1
    return candidate
