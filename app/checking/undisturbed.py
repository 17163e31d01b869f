"""Calls a user's function without side effects, in a forked process.

Otherwise random streams, state between calls and output would affect training.
"""

from __future__ import annotations

import io
import os
import select
import signal
import struct
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

import numpy as np

from app.bridge.framework import Framework
from app.custom.numba_functions import interpret_numba
from app.ops import random
from app.signals import die_with_parent, forked, kill_group

_SIZE = struct.Struct("Q")


def undisturbed(
    work: Callable[[], bytes], patience: float, compiled: bool = True, framework: Framework | None = None
) -> bytes:
    """Return the result of a function in a forked process; b"" if it raises or exceeds the time limit.

    Unless `compiled`, Numba functions run as Python there, without compilation. Without fork, the function is called in
    this process; one whose Numba functions should run as Python is not. One that uses a framework which cannot run in a
    forked process is called in this process, too.
    """

    def called() -> bytes:
        with _unheard():
            return work()

    def called_in_a_copy() -> bytes:
        if not compiled:
            interpret_numba()
        if framework is not None:
            framework.after_fork()
        return called()

    if hasattr(os, "fork") and (framework is None or framework.can_fork()):
        return _in_a_copy(called_in_a_copy, patience)
    try:
        return called() if compiled or framework is not None else b""
    except Exception:
        return b""


def _in_a_copy(work: Callable[[], bytes], patience: float) -> bytes:
    parent = os.getpid()
    reading, writing = os.pipe()
    copy = forked()
    if not copy:
        try:
            _group_of_its_own(0)
            die_with_parent(parent)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            answer = work()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(_SIZE.pack(len(answer)) + answer)
        finally:
            os._exit(0)
    os.close(writing)
    try:
        return _answer(reading, time.monotonic() + patience)
    finally:
        os.close(reading)
        _group_of_its_own(copy)  # it may not have come to that itself
        kill_group(copy)
        os.waitpid(copy, 0)


def _group_of_its_own(process: int) -> None:
    """Put a process, with those that it will start, into a group that can be killed."""
    with suppress(OSError):
        os.setpgid(process, process)


def _answer(reading: int, until: float) -> bytes:
    """Read an answer, whose size comes first: the pipe may stay open in processes that the function started."""
    content = b""
    while select.select([reading], [], [], max(until - time.monotonic(), 0))[0]:
        piece = os.read(reading, 1 << 16)
        content += piece
        if len(content) >= _SIZE.size and len(content) - _SIZE.size == _SIZE.unpack_from(content)[0]:
            return content[_SIZE.size :]
        if not piece:
            break
    return b""


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
