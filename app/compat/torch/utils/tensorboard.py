"""torch.utils.tensorboard: metrics of a run in a CSV file"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from app.errors import OperatorError


class SummaryWriter:
    """Writes numbers into `scalars.csv` in a folder: a line for each, with its tag, step and time.

    Pictures, histograms, text and graphs are refused. What TensorBoard's own files need, from `purge_step` on, has no
    effect.
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ):
        self.log_dir = str(log_dir) if log_dir else f"runs/{time.strftime('%b%d_%H-%M-%S')}_{os.getpid()}{comment}"
        path = Path(self.log_dir) / "scalars.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", newline="", encoding="utf-8")
        self._table = csv.writer(self._file)
        if not self._file.tell():
            self._table.writerow(["tag", "step", "value", "time"])

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a figure."""
        self._table.writerow([tag, global_step, float(scalar_value), time.time() if walltime is None else walltime])

    def add_scalars(self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None) -> None:
        """Write several figures, each under `main_tag/its name`."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step)

    def flush(self) -> None:
        """Write buffered lines to the disk."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("add_"):
            raise OperatorError(
                f"SummaryWriter.{name} is not part of this façade, which writes figures alone; use add_scalar, or "
                "matplotlib for a picture"
            )
        raise AttributeError(f"SummaryWriter has no {name!r}")
