"""What all commands share: how each way that one can end becomes a message and an exit status."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from app.errors import AppError
from app.printing import escaped

FAILED = 1
INTERRUPTED, CLOSED_PIPE, TERMINATED = 130, 141, 143
"""What shells report for a program that Ctrl-C, writing to a reader that has gone, or SIGTERM ended."""


class Parser(argparse.ArgumentParser):
    """A parser whose messages, which repeat words of the command line, are printed like all others."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(escaped(message), file)


class Terminated(KeyboardInterrupt):
    """SIGTERM asked for an end."""


def run(command: Callable[[], int]) -> int:
    """Run a command; gives its exit status. What a user can cause ends in one line on standard error, or silently."""
    open_streams()
    try:
        return command()
    except AppError as error:
        return _failed(f"error: {error}", error.exit_status)
    except Terminated:
        return _failed("terminated", TERMINATED)
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return CLOSED_PIPE
    except MemoryError as error:
        return _failed(f"error: not enough memory. {error}".rstrip(), FAILED)
    except OSError as error:
        return _failed(f"error: {error}", FAILED)
    finally:
        _drain(sys.stdout)
        _drain(sys.stderr)


def _failed(message: str, status: int) -> int:
    try:
        print(escaped(message), file=sys.stderr)
    except BrokenPipeError:
        return CLOSED_PIPE
    return status


def open_streams() -> None:
    """Make every text printable, whatever the locale, and a stream that the caller closed a place to lose it in."""
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
