"""Ctrl-C in two steps: the first stops at the next safe point, the second immediately. SIGTERM does the same. SIGHUP,
which comes when the terminal is closed, is always a first step.

Python's own KeyboardInterrupt can be raised anywhere: during an update of the weights, or in a callback of Numba's
compiler, where it is printed and ignored. `app.signals` ends a command even while native code prevents Python from
raising the exception.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from app.command_line import STOPS, Stopped
from app.ranks.current import place
from app.run.callbacks import Callback, Position
from app.run.events import Epoch
from app.run.live import CLEAR, can_draw
from app.signals import ends_at_once, is_command, wait_for_python

_HANGUP = getattr(signal, "SIGHUP", None)
_BY_DEFAULT: dict[signal.Signals, Any] = {
    number: signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL for number in STOPS
}


class Interruption(Callback):
    """Inside its block the first signal is only recorded; `check` raises the KeyboardInterrupt.

    It is the last callback of a run without checkpoints, so that all others have processed the position before it
    stops.
    """

    def __init__(self) -> None:
        self._noted: int | None = None
        self._heard = 0
        self.struck = False
        """Whether a second signal arrived, which ends everything immediately."""
        self._alone = True
        self._on_terminal = can_draw(sys.stderr)
        # Keep existing handlers, and ignored signals ignored.
        here = threading.current_thread() is threading.main_thread()
        self._mine = [number for number, usual in _BY_DEFAULT.items() if here and signal.getsignal(number) is usual]

        self._certain = ExitStack()

    def __enter__(self) -> Interruption:
        for number in self._mine:
            signal.signal(number, self._note)
        if is_command():
            last_words = CLEAR.encode() if self._on_terminal else b""
            last_words += b"" if place()[0] else b"interrupted\n"
            self._certain.enter_context(ends_at_once(self._mine, patience=1, last_words=last_words))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number in self._mine:
            signal.signal(number, _BY_DEFAULT[number])
        self._certain.close()
        if error is None:
            self.check()

    def wait_for_others(self) -> None:
        """Stop only on a signal that all ranks know of; the caller exchanges it between the ranks."""
        self._alone = False

    @property
    def heard(self) -> int:
        """The signal that this process received; 0 if none."""
        return self._heard

    def note(self, number: int) -> None:
        """Stop at the next `check`."""
        self._noted = number

    @property
    def noted(self) -> bool:
        """Whether a signal requested a stop."""
        return self._noted is not None

    def check(self) -> None:
        """Raise KeyboardInterrupt if a stop was requested."""
        if self._noted is not None:
            raise Stopped(self._noted)

    def piece(self, position: Position, losses: np.ndarray, accuracies: np.ndarray) -> None:
        self.check()

    def epoch(self, position: Position, result: Epoch) -> None:
        self.check()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == _HANGUP:  # a closed terminal may send it twice: once itself, and once by the shell
            wait_for_python()
            _discard_lost_output()
            if self._heard:
                return
        if self._heard:
            self.struck = True
            raise Stopped(self._heard)
        self._heard = number
        if self._alone:
            self.note(number)
        if place()[0]:
            return  # rank 0 prints it
        message = b"Stopping. A second signal stops immediately.\n"
        if number == signal.SIGINT:
            message = b"\nStopping. Press Ctrl-C again to stop immediately.\n"
        if self._on_terminal:
            message = CLEAR.encode() + message.lstrip()  # live lines may be on standard error
        with suppress(OSError):  # standard error may be closed
            os.write(2, message)  # not `print`: the signal may have interrupted a call of it


def _discard_lost_output() -> None:
    """Discard what is printed to a terminal that was closed, so that it does not prevent the run from ending well."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
