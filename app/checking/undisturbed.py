"""Calling a user's function without a trace: in a copy of the process, so that what it changes is not changed here.

Random streams, what an operator remembers between calls and what it prints would otherwise make a training another one.
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

from app.custom.numba_functions import without_numba
from app.ops import random


def undisturbed(work: Callable[[], bytes], patience: float, compiled: bool = True) -> bytes:
    """What a function returns in a copy of this process; nothing if it raises, or does not end within the patience.

    Unless `compiled`, Numba's functions run as Python there, so that none has to be compiled. Where processes cannot be
    copied, the function is called here.
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
        warnings.simplefilter("ignore")  # the copy has none of this process's threads, and needs none
        copy = os.fork()
    if not copy:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
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
    """Without what is printed, and without warnings; random numbers are drawn from other streams."""
    with (
        random.Streams(0).drawing(),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield
