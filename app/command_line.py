"""How a command ends: every error becomes one message and an exit status."""

from __future__ import annotations

import argparse
import difflib
import io
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TextIO

from app.errors import AppError, ConfigError, DataError, FileError, GradcheckError
from app.printing import alarm
from app.printing import message as as_message

FAILED, INTERRUPTED = 1, 130
"""The exit statuses for an error, and, as shells report it, for Ctrl-C."""
_OF_FILES = (ConfigError, DataError, FileError)
"""Errors that repeat what is in a file. They are one line."""


class Parser(argparse.ArgumentParser):
    """A parser that escapes its messages, because they repeat words of the command line, and says what may be meant."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # --range -1,1 has a value, and is not two options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [*map(str, action.choices or ())]
        if choices and value not in choices:
            closest = difflib.get_close_matches(str(value), choices, 1)
            hint = f"; did you mean {closest[0]!r}?" if closest else ""
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint} (choose from {', '.join(choices)})")

    def error(self, message: str) -> NoReturn:
        setting = re.match(r"unrecognized arguments: --([\w.]+=\S*)", message)
        hint = f"; a setting has no dashes: {setting[1]}" if setting else ""
        super().error(message + hint)

    def _print_message(self, message: str, file: Any = None) -> None:
        (sys.stderr if file is None else file).write(as_message(message))  # unlike argparse, raise if the disk is full


def count(text: str) -> int:
    """The type of an argument that is a number of things, at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def run(command: Callable[[], int]) -> int:
    """Run a command and return its exit status. Errors that a user can cause end in one line on standard error."""
    begin()
    try:
        try:
            status = command()
        except SystemExit:  # as after `--help`
            sys.stdout.flush()
            raise
        sys.stdout.flush()  # so that a full disk is an error
        return status
    except AppError as error:
        show = alarm if isinstance(error, GradcheckError) else print
        message = str(error).replace("\n", "\\n") if isinstance(error, _OF_FILES) else str(error)
        return _failed(f"error: {message}{_without_folder()}", error.exit_status, show)
    except KeyboardInterrupt as interrupt:
        below = "\n" if sys.stderr.isatty() else ""  # the terminal has printed ^C
        return _failed(below + ". ".join(["interrupted", *map(str, interrupt.args)]), INTERRUPTED)
    except BrokenPipeError:
        return FAILED
    except MemoryError as error:
        return _failed(f"error: not enough memory. {error}".rstrip(), FAILED)
    except OSError as error:
        return _failed(f"error: {_subject(error)}{error}{_without_folder()}", FAILED)
    finally:
        _drain(sys.stdout)
        _drain(sys.stderr)


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
    with suppress(OSError):  # there is nowhere to print it
        show(as_message(message), file=sys.stderr)
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


def _drain(stream: TextIO) -> None:
    """Flush a stream. On failure discard its content, so that Python does not try again at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
