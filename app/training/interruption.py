"""Ctrl-C in two steps: the first stops where stopping is clean, the second at once.

The exception that Python raises by itself strikes anywhere: halfway through an update of the weights, or in a
callback of Numba's compiler, where it is printed and forgotten.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType

_STOPPING = b"\nStopping. Ctrl-C again stops at once.\n"


class Interruption:
    """Inside its block the first Ctrl-C is only noted; `check` then raises the KeyboardInterrupt."""

    def __init__(self) -> None:
        self._noted = False
        # Whoever ignores Ctrl-C, or handles it otherwise, goes on doing so.
        python_handles_it = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._mine = python_handles_it and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interruption:
        if self._mine:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if error is None:
            self.check()

    def check(self) -> None:
        """Stop here if that was asked for."""
        if self._noted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.check()
        self._noted = True
        os.write(2, _STOPPING)  # not `print`, which the signal may have interrupted
