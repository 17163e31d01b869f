"""Calls a user's function without side effects, in a forked process.

Otherwise random streams, state between calls and output would affect training.
"""

from __future__ import annotations

import io
import os
import select
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress

import numpy as np

from app.command_line import STOPS
from app.custom.numba_functions import without_numba
from app.ops import random


def undisturbed(work: Callable[[], bytes], patience: float, compiled: bool = True) -> bytes:
    """Return the result of a function in a forked process; None if it raises or exceeds the time limit.

    Unless `compiled`, Numba functions run as Python there, without compilation. Without fork, the function is called in
    this process.
    """

    def called() -> bytes:
        with _unheard(), nullcontext() if compiled else without_numba():
            return work()

    if hasattr(os, "fork"):
        return _in_a_copy(called, patience)
    try:
        return called()
    except Exception:
        return b""


def _in_a_copy(work: Callable[[], bytes], patience: float) -> bytes:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child has none of this process's threads and needs none
        copy = os.fork()
    if not copy:
        try:
            for number in STOPS:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with os.fdopen(writing, "wb") as answer:
                answer.write(work())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as answers:
            return answers.read() if select.select([answers], [], [], patience)[0] else b""
    finally:
        with suppress(ProcessLookupError):
            os.kill(copy, signal.SIGKILL)
        os.waitpid(copy, 0)


@contextmanager
def _unheard() -> Iterator[None]:
    """Suppress output and warnings, and use separate random streams."""
    with (
        random.Streams(0).drawing(),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
