"""Console output of a run: lines, above a progress bar on a terminal and in a notebook; the result alone; or JSON."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from math import nan
from typing import Any, Literal, TextIO

import msgspec

from app.printing import alarm, escaped, figure, json_alone, message, wrapped
from app.run.callbacks import Callback, Position
from app.run.events import Epoch, Event, Iteration, json_line, line
from app.run.record import RunRecord

_ERASE = "\r\x1b[K"
"""Erases the line of a terminal."""
_FIGURES = 64
"""The columns of a line of training after the operator's name."""


class Console(Callback):
    """Prints the lines of a run to standard output, above a progress bar.

    `lines=False` leaves out all but warnings, which go to standard error, and the outcome: as text, as JSON together
    with each event, or not at all for a caller that has it. `brief` leaves only the bar and warnings.
    """

    def __init__(
        self,
        lines: bool = True,
        outcome: Literal["text", "json", None] = "text",
        out: TextIO | None = None,
        brief: bool = False,
    ) -> None:
        self._lines, self._outcome, self._out, self.brief = lines, outcome, out, brief
        self._bar: Any = None
        self._width, self._epochs, self._operators, self._iterations, self._done = 0, 0, 0, 0, 0
        self._tested_on = "test"
        self._busy = False

    def for_seed(self) -> Console:
        """Return the console of one run of several, whose outcome is printed together with that of the others."""
        return Console(self._lines, None, brief=True)

    def say(self, text: str) -> None:
        """Print lines above the bar, wrapped to the width of the terminal."""
        if self._lines and not self.brief:
            self._print(text)

    def _print(self, text: str) -> None:
        self._erase()
        text = wrapped(escaped(text), self.columns)
        if self._bar is None:
            print(text, flush=True)
        else:
            self._bar.write(text)
            sys.stdout.flush()

    def warn(self, text: str) -> None:
        """Print a warning. The run continues."""
        if self._lines and (self.brief or self._outcome == "text"):
            self._print(text)
        else:
            print(message(text), file=sys.stderr)

    def alarm(self, text: str) -> None:
        """Print a prominent warning."""
        self._erase()
        alarm(text, sys.stdout if self._lines else sys.stderr)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Show on a terminal what the block does, where the progress bar is otherwise."""
        self._busy = self._lines and _can_draw() and not in_notebook()
        if self._busy:
            print(escaped(f"{what} ...")[: (_columns_of(sys.stderr) or 80) - 1], end="", file=sys.stderr, flush=True)
        try:
            yield
        finally:
            self._erase()

    def _erase(self) -> None:
        if self._busy:
            print(_ERASE, end="", file=sys.stderr, flush=True)
        self._busy = False

    def start_training(self, operators: Sequence[str], epochs: int, tested_on: str = "test") -> None:
        """Training of these operators begins."""
        room = max((self.columns or 1000) - _FIGURES, 8)
        self._width = min(max(map(len, operators)), room)
        self._epochs, self._operators, self._tested_on = epochs, len(operators), tested_on

    def end_seed(self, run: RunRecord, number: int, seeds: int) -> None:
        """A run of a comparison has ended."""
        seed, width = run.config.seed, max(map(len, run.operators))
        for event in run.events if self._outcome == "json" else ():
            print(json_line({**msgspec.to_builtins(event), "seed": seed}), file=self._out, flush=True)
        self.say(f"Seed {seed} ({number} of {seeds})")
        for operator in run.operators:
            seconds, accuracy = run.seconds(operator), run.accuracy(operator)
            speed = "" if seconds is None else f"  {seconds:.3f} s per epoch"
            self.say(f"  {operator:{width}}  {run.tested_on} accuracy {accuracy:.4f}{speed}")

    def record(self, event: Event) -> None:
        """Print an event that was written to the metrics: all of them as JSON, or as lines those of training."""
        if self._outcome == "json":
            print(line(event), file=self._out, flush=True)
        elif isinstance(event, Iteration):
            of, loss = self._iterations, nan if event.loss is None else event.loss
            where = f"iteration {event.iteration:>{len(str(of))}}/{of}"
            self.say(f"{self._head(event)}  {where}  loss {figure(loss)}  accuracy {event.accuracy:.4f}")
        elif isinstance(event, Epoch):
            loss = nan if event.test_loss is None else event.test_loss
            figures = f"{self._tested_on} accuracy {event.test_accuracy:.4f}  loss {figure(loss)}"
            self.say(f"{self._head(event)}  {figures}  {event.seconds:.3f} s")

    def conclude(self, text: str, outcome: Mapping[str, Any], folder: str, kind: str = "run") -> None:
        """Print the outcome, given as text and as data, and the folder of the run or, as `kind`, the comparison."""
        if self._outcome == "json":
            print(json_line({**outcome, "folder": folder}), file=self._out, flush=True)
        elif self._outcome == "text":
            before = "\n" if self._lines else ""
            self._lines = True  # a report's path follows
            self._print(f"{before}{text}\n\nThe {kind} is in {folder}/")
        else:
            self.say(f"The {kind} is in {folder}/")

    @property
    def columns(self) -> int | None:
        """The width of the terminal of standard output; None if it is not one, or the width is unknown."""
        return _columns_of(sys.stdout)

    # As a callback

    def begin_epoch(self, position: Position) -> None:
        self._iterations, self._done = position.iterations, 0
        if self._bar is None and self._lines:
            each = position.iterations * self._operators
            self._bar = _bar(total=each * self._epochs, initial=each * position.epoch)
        if self._bar is not None:
            self._bar.set_description(escaped(self._name(position.learner.operator)).strip())  # which draws it

    def advance(self, position: Position) -> None:
        if self._bar is not None:
            self._bar.update(position.done - self._done)
        self._done = position.done

    def end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
            self._busy = _can_draw() and not in_notebook()  # tqdm leaves a bar that Ctrl-C met while it was drawn
            self._erase()

    def _name(self, operator: str) -> str:
        return f"{operator:{self._width}}" if len(operator) <= self._width else f"…{operator[1 - self._width :]}"

    def _head(self, event: Iteration | Epoch) -> str:
        return f"{self._name(event.operator)}  epoch {event.epoch + 1}/{self._epochs}"


def _bar(**settings: Any) -> Any:
    """A progress bar on a terminal, or in a notebook with ipywidgets, not drawn yet; None elsewhere."""
    from tqdm import tqdm  # imported late: nothing else needs it

    kind: type[tqdm[Any]] = tqdm
    if in_notebook():
        if find_spec("ipywidgets") is None:  # without which tqdm prints a warning
            return None
        from tqdm.notebook import tqdm as kind
    elif not _can_draw():
        return None
    kind.monitor_interval = 0  # a thread that outlives the run
    columns = None if in_notebook() else (_columns_of(sys.stderr) or 80) - 3  # room for ^C
    # with a delay, tqdm draws nothing in its constructor: whoever draws it has it, and can erase it
    return kind(**settings, unit="batch", file=sys.stderr, leave=False, ncols=columns, delay=1e-9)


def _columns_of(stream: TextIO) -> int | None:
    try:
        return os.get_terminal_size(stream.fileno()).columns or None if stream.isatty() else None
    except (OSError, ValueError):
        return None


def _can_draw() -> bool:
    """Whether standard error is a terminal that moves its cursor, and whose screen no pipe shares."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in ("", "dumb"):
        return False
    try:
        return not stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # not a file of the operating system
        return True


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, and not IPython on a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def console(quiet: bool = False, as_json: bool = False) -> Iterator[Console]:
    """Return the console for the command line's options. With JSON, all other output goes to standard error."""
    if as_json:
        with json_alone() as out:
            yield Console(lines=False, outcome="json", out=out)
    else:
        yield Console(lines=not quiet)
