"""Progress lines: how far a pass over the data is, and its metrics."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

WIDTH = 30


class Progress:
    """The progress of one pass: with verbose 1 a bar on one line, with 2 a line per report."""

    def __init__(self, steps: int | None, verbose: int):
        self.steps, self.verbose = steps, verbose
        self._start = time.perf_counter()

    def report(self, step: int, values: Sequence[tuple[str, Any]]) -> None:
        """Print the metrics after a number of batches."""
        if not self.verbose:
            return
        parts = [self._place(step), *(f"{name}: {_number(value)}" for name, value in values), self._pace(step)]
        text = " - ".join(parts)
        last = self.steps is not None and step >= self.steps
        if self.verbose == 1:
            sys.stdout.write("\r" + text + ("\n" if last else ""))
        else:
            sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def _place(self, step: int) -> str:
        if self.steps is None:
            return f"step {step}"
        place = f"step {step:>{len(str(self.steps))}}/{self.steps}"
        if self.verbose != 1:
            return place
        done = WIDTH * step // max(self.steps, 1)
        bar = "=" * WIDTH if step >= self.steps else "=" * max(done - 1, 0) + ">" * (done > 0) + "." * (WIDTH - done)
        return f"{place} [{bar}]"

    def _pace(self, step: int) -> str:
        seconds = (time.perf_counter() - self._start) / max(step, 1)
        if seconds >= 1:
            return f"{seconds:.0f}s/step"
        return f"{seconds * 1e3:.0f}ms/step" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us/step"


def _number(value: Any) -> str:
    return " ".join(f"{n:.4f}" if abs(n) > 1e-3 else f"{n:.4e}" for n in np.ravel(np.asarray(value, float)).tolist())
