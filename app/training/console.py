"""What a run says in the terminal: a line for each report, and a progress bar between them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm


class Console:
    """Prints to standard output; the bar is on standard error, and only on a terminal."""

    def __init__(self, width: int, epochs: int):
        self._width = width
        self._epochs = epochs

    def say(self, text: str = "") -> None:
        """A line of its own, above the bar if one is drawn."""
        tqdm.write(text, file=sys.stdout)
        sys.stdout.flush()

    @contextmanager
    def bar(self, operator: str, epoch: int, iterations: int) -> Iterator[Any]:
        """A bar over the iterations of an epoch."""
        title = f"{operator:{self._width}}  epoch {epoch + 1}/{self._epochs}"
        with tqdm(total=iterations, desc=title, unit="batch", leave=False, disable=not sys.stderr.isatty()) as bar:
            yield bar

    def iteration(self, operator: str, epoch: int, iteration: int, of: int, loss: float, accuracy: float) -> None:
        place = f"iteration {iteration:>{len(str(of))}}/{of}"
        self.say(f"{self._head(operator, epoch)}  {place}  loss {loss:.4f}  accuracy {accuracy:.4f}")

    def epoch(self, operator: str, epoch: int, seconds: float, loss: float, accuracy: float) -> None:
        result = f"test accuracy {accuracy:.4f}  test loss {loss:.4f}  {seconds:.3f} s"
        self.say(f"{self._head(operator, epoch)}  {result}")

    def _head(self, operator: str, epoch: int) -> str:
        return f"{operator:{self._width}}  epoch {epoch + 1}/{self._epochs}"
