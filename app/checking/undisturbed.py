"""Calls a user's function without side effects, in a forked process.

Otherwise random streams, state between calls and output would affect training.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np

from app.bridge.framework import Framework
from app.checking.processes import End, values_of
from app.custom.calling import described
from app.custom.numba_functions import interpret_numba, modules_with_numba
from app.ops import random

_PATIENCE_WITH_PYTHON = 60.0
"""Seconds after which Numba functions that run as Python are given up."""


def undisturbed(
    work: Callable[[], Any], patience: float, compiled: bool = True, framework: Framework | None = None
) -> Any:
    """Return the result of a function in a forked process, or the End that says why there is none.

    Unless `compiled`, Numba functions run as Python there, without compilation. Without fork, the function is called in
    this process; one whose Numba functions should run as Python is not. One that uses a framework which cannot run in a
    forked process is called in this process, too.
    """
    modules = [] if compiled else modules_with_numba()

    def called() -> Any:
        with _unheard():
            return work()

    def called_in_a_copy() -> Iterator[Any]:
        if not compiled:
            interpret_numba(modules)
        if framework is not None:
            framework.after_fork()
        yield called()

    if hasattr(os, "fork") and (framework is None or framework.can_fork()):
        with closing(values_of(called_in_a_copy, patience)) as values:
            return next(values)
    if not compiled and framework is None:
        return End("this system cannot fork a process for it")
    try:
        return called()
    except Exception as error:
        return End(f"it raises {described(error)}")


def in_python_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function in a forked process, in which Numba functions run as Python, or its End."""
    return undisturbed(lambda: work(*arguments), _PATIENCE_WITH_PYTHON, compiled=False)


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
