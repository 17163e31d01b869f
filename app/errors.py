"""The exceptions. Each message says what was wrong, what was found, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

__all__ = [
    "AppError",
    "BoundsError",
    "ConfigError",
    "CustomOperatorError",
    "DataError",
    "DtypeError",
    "ExportError",
    "FileError",
    "GradcheckError",
    "GradientArgumentError",
    "GradientError",
    "InPlaceError",
    "MissingFileError",
    "MissingFunctionError",
    "OperatorError",
    "ProgramError",
    "ReadOnlyError",
    "ShapeError",
]


def __dir__() -> list[str]:
    return __all__


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception. Python prints notes from 3.11 on; before, they are only stored."""
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:
        error.__notes__ = [*getattr(error, "__notes__", ()), note]  # type: ignore[attr-defined]


class AppError(Exception):
    """The base of all errors that a user can correct. Commands print them without a traceback."""

    exit_status = 1

    _render_traceback_: ClassVar[Callable[[AppError], list[str]]]
    """What IPython shows of the error: the lines of the user's code, and the message. `reading.py` assigns it, which
    knows the files of users."""


class ConfigError(AppError):
    """A configuration file or a `key=value` that cannot be used."""

    exit_status = 2


class DataError(AppError):
    """A data file that is missing, damaged or of the wrong kind."""


class FileError(AppError, ValueError):
    """A file that is damaged or of the wrong kind, or a value that cannot be saved."""


class MissingFileError(AppError, FileNotFoundError):
    """A file that does not exist."""


class OperatorError(AppError, RuntimeError):
    """An operator, built-in or custom, that was called wrongly."""


class ShapeError(OperatorError, ValueError):
    """Shapes that an operator does not accept."""


class DtypeError(OperatorError, TypeError):
    """Element types that an operator does not accept."""


class CustomOperatorError(OperatorError, ValueError, TypeError):
    """A custom operator that breaks the rules, for example by what it returns or saves."""


class MissingFunctionError(CustomOperatorError, NotImplementedError, OSError):
    """A PyLayer without forward or backward. It is an OSError, too, as in Paddle."""


class GradientError(OperatorError, ValueError):
    """A gradient with respect to a value that the result does not depend on."""


class GradientArgumentError(GradientError, AssertionError, TypeError):
    """An argument of `grad` that is not a Tensor."""


class GradcheckError(OperatorError):
    """A gradient that differs from finite differences, or cannot be compared with them."""


class InPlaceError(OperatorError, ValueError):
    """An in-place change of a value that a gradient needs."""


class ReadOnlyError(OperatorError, ValueError):
    """An operator's function that writes into its inputs, which are read-only."""


class BoundsError(OperatorError, IndexError):
    """An operator's function that indexes outside of an array."""


class ProgramError(AppError, ValueError, RuntimeError):
    """A Program that cannot be built or run: a missing feed, an unknown variable, no initial value."""


class ExportError(AppError, RuntimeError):
    """A network that cannot be exported. The message lists all reasons at once."""


def silent_end(who: str, error: BaseException) -> OperatorError:
    """The error for a user's function that raised SystemExit or the like, which would end the program silently."""
    return OperatorError(f"{who} raised {type(error).__name__}: {error}")
