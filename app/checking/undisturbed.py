"""Calls a user's function without side effects, in a forked process.

Otherwise random streams, state between calls and output would affect training.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any
from weakref import ref

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


class PythonProcess:
    """A forked process in which Numba functions run as Python, for all questions about one operator.

    It begins with the first question, and ends when this object is deleted, or with the thread that asked.
    """

    def __init__(self, operator: Any) -> None:
        self._operator = ref(operator)
        self._answers: Generator[Any, None, None] | None = None
        self._questions = -1
        self._owner: tuple[int, threading.Thread] | None = None

    def ask(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of a module returns there, or the End; the arguments may refer to the operator."""
        try:
            question = _pickled((work, arguments), self._operator())
        except Exception:  # a setting may be anything; a process that is forked now has it
            question = b""
        if not question or not hasattr(os, "fork"):
            return undisturbed(lambda: work(*arguments), _PATIENCE_WITH_PYTHON, compiled=False)
        if self._answers is None or self._owner != (os.getpid(), threading.current_thread()):
            self.close()
            self._begin()
        assert self._answers is not None
        with suppress(BrokenPipeError), os.fdopen(os.dup(self._questions), "wb") as pipe:
            pipe.write(len(question).to_bytes(8, "big") + question)
        answer = next(self._answers)
        if isinstance(answer, End):
            self.close()
        return answer

    def close(self) -> None:
        """End the process; the next question begins another."""
        if self._answers is not None:
            self._answers.close()
            os.close(self._questions)
            self._answers = None

    __del__ = close

    def _begin(self) -> None:
        reading, self._questions = os.pipe()
        writing, operator, modules = self._questions, self._operator, modules_with_numba()

        def answers() -> Iterator[Any]:
            os.close(writing)
            interpret_numba(modules)
            yield None
            with os.fdopen(reading, "rb") as questions:
                while size := questions.read(8):
                    work, arguments = _unpickled(questions.read(int.from_bytes(size, "big")), operator())
                    with _unheard():
                        answer = work(*arguments)
                    yield answer

        self._answers = values_of(answers, _PATIENCE_WITH_PYTHON)
        next(self._answers)  # not before that the process may wait for a question
        self._owner = os.getpid(), threading.current_thread()
        os.close(reading)


def _pickled(thing: Any, operator: Any) -> bytes:
    """Something that may refer to an operator, which the process that it is sent to has already."""
    content = io.BytesIO()
    pickler = pickle.Pickler(content)
    pickler.persistent_id = lambda part: "operator" if part is operator else None  # type: ignore[method-assign]
    pickler.dump(thing)
    return content.getvalue()


def _unpickled(content: bytes, operator: Any) -> Any:
    unpickler = pickle.Unpickler(io.BytesIO(content))
    unpickler.persistent_load = lambda _: operator  # type: ignore[method-assign]
    return unpickler.load()


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
