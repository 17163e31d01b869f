"""How a command ends: every error becomes one message and an exit status."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from app.errors import AppError, GradcheckError
from app.printing import alarm, escaped

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

FAILED, CLOSED_PIPE = 1, 141
"""The exit statuses for an error, and, as shells report it, for a closed pipe."""
STOPS = {
    getattr(signal, name): word
    for name, word in {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hangup"}.items()
    if hasattr(signal, name)  # Windows has no SIGHUP
}
"""The signals that ask a command to end, and its last word. The exit status is 128 and the number, as in shells."""


class Parser(argparse.ArgumentParser):
    """A parser that escapes its messages, because they repeat words of the command line."""

    def _print_message(self, message: str, file: Any = None) -> None:
        (sys.stderr if file is None else file).write(escaped(message))  # unlike argparse, raise if the disk is full


class Stopped(KeyboardInterrupt):
    """Raised for one of the signals in `STOPS`."""

    def __init__(self, number: int):
        super().__init__()
        self.number = signal.Signals(number)


def run(command: Callable[[], int]) -> int:
    """Run a command and return its exit status. Errors that a user can cause end in one line on standard error."""
    begin()
    try:
        return _written(command)
    except AppError as error:
        show = alarm if isinstance(error, GradcheckError) else print
        return _failed(f"error: {error}{_without_folder()}", error.exit_status, show)
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        return _failed(STOPS[number], 128 + number)
    except BrokenPipeError:
        return CLOSED_PIPE
    except MemoryError as error:
        return _failed(f"error: not enough memory. {error}".rstrip(), FAILED)
    except OSError as error:
        return _failed(f"error: {_subject(error)}{error}{_without_folder()}", FAILED)
    finally:
        _drain(sys.stdout)
        _drain(sys.stderr)


def _written(command: Callable[[], int]) -> int:
    """Run a command and flush its output, so that a full disk is an error."""
    try:
        status = command()
    except SystemExit:  # as after `--help`
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _subject(error: OSError) -> str:
    """Whether an error without a file name is about standard output, found out by flushing it."""
    try:
        if error.filename is None:
            print(end="\n" if getattr(sys.stdout, "write_through", False) else "", flush=True)
    except OSError:
        return "standard output cannot be written: "
    return ""


def _without_folder() -> str:
    """An explanation if the working folder no longer exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return ". The working folder no longer exists: change to another one"
    return ""


def _failed(message: str, status: int, show: Callable[..., None] = print) -> int:
    try:
        show(escaped(message), file=sys.stderr)
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError:  # there is nowhere to print it
        pass
    return status


def begin() -> None:
    """Prepare the output streams: any text can be printed, and output to a closed stream is discarded.

    With colorama installed, Numba would colour its errors, which messages quote, and write to the terminal at the end.
    """
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
            if stream.isatty() and hasattr(signal, "SIGHUP"):
                binary = io.BufferedWriter(_Terminal(stream.fileno(), "w", closefd=False))
                text = io.TextIOWrapper(binary, stream.encoding, stream.errors)
                text.reconfigure(line_buffering=stream.line_buffering, write_through=stream.write_through)
                setattr(sys, name, text)


class _Terminal(io.FileIO):
    """Output to a terminal. If it is closed, writing may fail before the kernel's SIGHUP arrives: raise it here."""

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        signal.raise_signal(signal.SIGHUP)
        return memoryview(data).nbytes


def _drain(stream: TextIO) -> None:
    """Flush a stream. On failure discard its content, so that Python does not try again at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
