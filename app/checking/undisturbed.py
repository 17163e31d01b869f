"""Calls a user's function without side effects, in a forked process.

Otherwise random streams, state between calls and output would affect training.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import NamedTuple

import numpy as np

from app.bridge.framework import Framework
from app.checking.processes import End, Send, messages_of
from app.custom.calling import described
from app.custom.numba_functions import interpret_numba
from app.ops import random


class Answer(NamedTuple):
    """What a function returned."""

    content: bytes = b""
    end: End = End()
    """Why it returned nothing."""


def undisturbed(
    work: Callable[[], bytes], patience: float, compiled: bool = True, framework: Framework | None = None
) -> Answer:
    """Return the result of a function in a forked process.

    Unless `compiled`, Numba functions run as Python there, without compilation. Without fork, the function is called in
    this process; one whose Numba functions should run as Python is not. One that uses a framework which cannot run in a
    forked process is called in this process, too.
    """

    def called() -> bytes:
        with _unheard():
            return work()

    def called_in_a_copy(send: Send) -> None:
        if not compiled:
            interpret_numba()
        if framework is not None:
            framework.after_fork()
        send(called())

    if hasattr(os, "fork") and (framework is None or framework.can_fork()):
        messages = messages_of(called_in_a_copy, patience)
        try:
            content = next(messages)
        except StopIteration as end:
            return Answer(end=end.value)
        messages.close()
        return Answer(content)
    if not compiled and framework is None:
        return Answer(end=End("this system cannot fork a process for it"))
    try:
        return Answer(called())
    except Exception as error:
        return Answer(end=End(f"it raises {described(error)}"))


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
