"""Progress in a notebook: one display that is updated in place. Only warnings stay."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from app.printing import escaped, message
from app.run.callbacks import Contestant, Position
from app.run.console import Console
from app.run.events import Epoch

COLUMNS, LINES = 72, 12
"""The characters per line, and the number of lines shown."""

Show = Callable[[str], None]
"""Replaces the displayed text."""


def kernel() -> Any:
    """Return the IPython of a notebook; None elsewhere, also for IPython on a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell if getattr(shell, "kernel", None) is not None else None


def is_interactive() -> bool:
    """Return whether this is an interactive session."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or kernel() is not None


class Display:
    """A text in the output of a cell that is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, text: str) -> None:
        """Replace the text."""
        from IPython.display import display  # IPython is running: there is a kernel

        html = f'<pre style="white-space: pre; overflow-x: auto">{escape(text)}</pre>'
        content = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class NotebookConsole(Console):
    """The console of a notebook: one updated text with the current activity and a line per operator."""

    def __init__(self, show: Show | None = None):
        super().__init__(live=False)
        self._show = show or Display()
        self._doing = self._end = ""
        self._tested_at: dict[str, str] = {}

    def say(self, text: str) -> None:
        self._doing = f"{self._end}{escaped(text)}".strip("\n")
        self._draw()

    def warn(self, text: str) -> None:
        """Print a warning that stays below the display."""
        print(message(text), file=sys.stderr)

    def start_training(
        self, operators: Sequence[str], epochs: int, batch_size: int, title: str = "", tested_on: str = "test"
    ) -> None:
        self._tested_at = {}
        super().start_training(operators, epochs, batch_size, title, tested_on)
        self._doing = title or "Training"

    def end_seed(self, entered: Sequence[Contestant], tested_on: str = "test") -> None:
        """Print nothing: the lines of the operators show it."""

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str) -> None:
        """Print only the folder: the notebook displays the result."""
        self._progress = {}
        resume = "".join(
            f"{line}\n" for line in text.splitlines() if line.startswith(("The run was stopped", "Resume with"))
        )
        self.say(f"{resume}The run is in {folder}/")
        self._end = f"{self._doing}\n"

    # As a callback

    def report(self, position: Position, loss: float, accuracy: float) -> None:
        """Print nothing: the lines of the operators show it."""

    def epoch(self, position: Position, result: Epoch) -> None:
        self._end_wait()
        self._tested_at[position.contestant.operator] = f"  {self._tested_on} accuracy {result.test_accuracy:.4f}"
        self._draw(position)

    def _draw(self, position: Position | None = None) -> None:
        operators = [self._line(name, COLUMNS) + self._tested_at.get(name, "") for name in self._progress]
        self._show("\n".join([self._doing, *operators][:LINES]))
        self._drawn_at = time.monotonic()
