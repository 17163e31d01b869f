"""What all commands share: how each way that one can end becomes a message and an exit status."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from app.errors import AppError, GradcheckError
from app.printing import alarm, escaped

FAILED = 1
INTERRUPTED, CLOSED_PIPE, TERMINATED = 130, 141, 143
"""What shells report for a program that Ctrl-C, writing to a reader that has gone, or SIGTERM ended."""


class Parser(argparse.ArgumentParser):
    """A parser whose messages, which repeat words of the command line, are printed like all others."""

    def _print_message(self, message: str, file: Any = None) -> None:
        (sys.stderr if file is None else file).write(escaped(message))  # argparse itself would not mind a full disk


class Terminated(KeyboardInterrupt):
    """SIGTERM asked for an end."""


def run(command: Callable[[], int]) -> int:
    """Run a command; gives its exit status. What a user can cause ends in one line on standard error, or silently."""
    begin()
    try:
        return _written(command)
    except AppError as error:
        told = alarm if isinstance(error, GradcheckError) else print
        return _failed(f"error: {error}{_without_folder()}", error.exit_status, told)
    except Terminated:
        return _failed("terminated", TERMINATED)
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
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
    """Run a command, and write out what it printed: a disk may be full."""
    try:
        status = command()
    except SystemExit:  # as after `--help`
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _subject(error: OSError) -> str:
    """What an error that names no file is about, as far as that can be found out: what was printed is still waiting."""
    try:
        if error.filename is None:
            print(end="\n" if getattr(sys.stdout, "write_through", False) else "", flush=True)
    except OSError:
        return "standard output cannot be written: "
    return ""


def _without_folder() -> str:
    """Words about a working folder that is gone, by which no file can be found."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return ". The working folder is gone: change into one that is there"
    return ""


def _failed(message: str, status: int, told: Callable[..., None] = print) -> int:
    try:
        told(escaped(message), file=sys.stderr)
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError:  # nowhere is left to say it
        pass
    return status


def begin() -> None:
    """Make the streams what a command expects: every text can be printed, and what a closed stream is given is lost."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drain(stream: TextIO) -> None:
    """Write out what is waiting. What cannot be written is dropped, or Python would try, and complain, as it exits."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
