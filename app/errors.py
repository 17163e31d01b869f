"""The errors that a user can meet: each says what was wrong, what was found, what was expected and what to do."""

from __future__ import annotations


class AppError(Exception):
    """Any mistake that the user can mend. At the command line it is printed without a traceback."""

    exit_status = 1


class ConfigError(AppError):
    """A configuration file or a `key=value` that cannot be used."""

    exit_status = 2


class DataError(AppError):
    """A data file that is missing, damaged or not what it should be."""


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


class InPlaceError(OperatorError, ValueError):
    """A change in place that gradients forbid, or that was made before they were computed."""


class ProgramError(AppError, ValueError, RuntimeError):
    """A Program that cannot be built or run as asked: a missing feed, an unknown variable, no initial value."""
