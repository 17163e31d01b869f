"""Work in a forked process, which sends values until it ends: a mistake in native code can end it at any time."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import signal
import struct
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from app.custom.calling import described
from app.signals import die_with_parent, forked, kill_group

_HEAD = struct.Struct("=BQ")
"""What a message begins with: its kind and its size. The pipe may stay open in processes that the work has started, so
that its end says nothing."""
_VALUE, _DONE, _RAISED = range(3)
_BY_HAND = "call it by yourself, with `python -X faulthandler`, to see the line"
_REMEDIES = {
    "SIGSEGV": f"native code uses memory that is not its own; {_BY_HAND}",
    "SIGBUS": f"native code uses memory that is not its own; {_BY_HAND}",
    "SIGFPE": f"native code divides whole numbers by zero; {_BY_HAND}",
    "SIGABRT": f"native code gave up, and says why on standard error; {_BY_HAND}",
    "SIGILL": "native code has an instruction that this processor does not have: compile it for this one",
    "SIGKILL": "perhaps the memory was not enough: try smaller inputs",
}
"""What to do about signals that end a process."""


class End(NamedTuple):
    """How work in a forked process ended."""

    problem: str = ""
    """Why it did not return, and what to do about it; "" if it did."""
    crashed: bool = False
    """Whether it ended the process."""


def values_of(
    work: Callable[[], Iterable[Any]], patience: float | None, is_silent: bool = True
) -> Generator[Any, None, None]:
    """The values that `work` gives in a forked process, pickled on their way, and last its End.

    It is ended after `patience` seconds without a value. If it `is_silent`, nothing that it prints is shown.
    """
    parent = os.getpid()
    reading, writing = os.pipe()
    child = forked()
    if not child:
        try:
            os.close(reading)
            _begin(parent, is_silent)
            _send_all(work, writing)
        finally:
            os._exit(1)
    os.close(writing)
    status = None
    try:
        for value in _received(reading, patience):
            yield value
            if isinstance(value, End):
                return
        _group_of_its_own(child)
        status = os.waitpid(child, 0)[1]
        yield End(ended(status), crashed=True)
    finally:
        os.close(reading)
        if os.getpid() == parent:  # a process that was forked in between has this generator, too
            if status is None:
                _group_of_its_own(child)  # it may not have come to that itself
            kill_group(child)  # and what it has started
            if status is None:
                os.waitpid(child, 0)


def _group_of_its_own(process: int) -> None:
    """Put a process, with those that it will start, into a group that can be killed."""
    with suppress(OSError):
        os.setpgid(process, process)


def _begin(parent: int, is_silent: bool) -> None:
    _group_of_its_own(0)
    faulthandler.disable()  # a crash is reported by its signal
    gc.freeze()  # what is there already, a whole framework, is not searched for garbage
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (1, 2) if is_silent else ():  # native code prints there
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _send_all(work: Callable[[], Iterable[Any]], writing: int) -> None:
    with os.fdopen(writing, "wb") as pipe:

        def send(kind: int, content: bytes = b"") -> None:
            pipe.write(_HEAD.pack(kind, len(content)) + content)
            pipe.flush()

        try:
            for value in work():
                send(_VALUE, pickle.dumps(value))
        except BaseException as error:
            message = described(error) if isinstance(error, Exception) else f"{type(error).__name__} {error}".strip()
            send(_RAISED, message.encode("utf-8", "replace"))
        else:
            send(_DONE)


def _received(reading: int, patience: float | None) -> Iterator[Any]:
    """The values from a pipe, and last an End, unless the pipe was closed."""
    content = b""
    began = time.monotonic()

    def left() -> float | None:
        return None if patience is None else max(began + patience - time.monotonic(), 0)

    while select.select([reading], [], [], left())[0]:
        piece = os.read(reading, 1 << 16)
        if not piece:
            return
        content += piece
        while len(content) >= _HEAD.size:
            kind, size = _HEAD.unpack_from(content)
            if len(content) < _HEAD.size + size:
                break
            message, content = content[_HEAD.size : _HEAD.size + size], content[_HEAD.size + size :]
            if kind == _VALUE:
                yield pickle.loads(message)
            else:
                yield End("" if kind == _DONE else f"it raises {message.decode()}")
                return
            began = time.monotonic()
    yield End(f"it did not end within {patience:g} seconds: try smaller inputs")


def ended(status: int) -> str:
    """How a process ended that says nothing itself, and what to do about it."""
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        remedy = _REMEDIES.get(name, _BY_HAND)
    else:
        name, remedy = f"status {os.WEXITSTATUS(status)}", "raise an error in place of os._exit"
    return f"it ends the process, with {name}: {remedy}"
