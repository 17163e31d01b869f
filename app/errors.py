"""The errors that a user can meet: each says what was wrong, what was found, what was expected and what to do."""

from __future__ import annotations

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


def add_note(error: BaseException, words: str) -> None:
    """Put words below those of an error: Python prints them from 3.11 on, and keeps them for whoever asks before."""
    if hasattr(error, "add_note"):
        error.add_note(words)
    else:
        error.__notes__ = [*getattr(error, "__notes__", ()), words]  # type: ignore[attr-defined]


class AppError(Exception):
    """Any mistake that the user can mend. At the command line it is printed without a traceback."""

    exit_status = 1


class ConfigError(AppError):
    """A configuration file or a `key=value` that cannot be used."""

    exit_status = 2


class DataError(AppError):
    """A data file that is missing, damaged or not what it should be."""


class FileError(AppError, ValueError):
    """A file that is damaged or of another kind, or a value that no file can hold."""


class MissingFileError(AppError, FileNotFoundError):
    """A file that is not there."""


class OperatorError(AppError, RuntimeError):
    """An operator, built-in or custom, that cannot do what it was asked."""


class ShapeError(OperatorError, ValueError):
    """Shapes that an operator cannot work on."""


class DtypeError(OperatorError, TypeError):
    """Element types that an operator cannot work on."""


class CustomOperatorError(OperatorError, ValueError, TypeError):
    """A custom operator that breaks the rules: by what it is called with, what it keeps or what it returns."""


class MissingFunctionError(CustomOperatorError, NotImplementedError, OSError):
    """A PyLayer without forward or backward. (Paddle shows what happens inside a backward pass as an OSError.)"""


class GradientError(OperatorError, ValueError):
    """A gradient that was asked for, and that nothing leads to."""


class GradientArgumentError(GradientError, AssertionError, TypeError):
    """A call of `grad` that names something else than Tensors; Paddle asserts, PyTorch raises a TypeError."""


class GradcheckError(OperatorError):
    """A gradient that is not what finite differences give, or that cannot be compared with them."""


class InPlaceError(OperatorError, ValueError):
    """A change in place that gradients forbid, or that was made before they were computed."""


class ReadOnlyError(OperatorError, ValueError):
    """A function of an operator that writes into what it was given, which is read-only."""


class BoundsError(OperatorError, IndexError):
    """A function of an operator that indexes outside of an array."""


class ProgramError(AppError, ValueError, RuntimeError):
    """A Program that cannot be built or run as asked: a missing feed, an unknown variable, no initial value."""


class ExportError(AppError, RuntimeError):
    """A network that cannot be written in another format: what stands in the way is named, all of it at once."""


def silent_end(who: str, error: BaseException) -> OperatorError:
    """The error for a user's function that raised what would end the program without a word, such as SystemExit."""
    return OperatorError(f"{who} raised {type(error).__name__}: {error}")
