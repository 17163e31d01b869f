"""The Programs that statements build into, and whether values are made eagerly or in a Program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.graph.program import Program

_main, _startup = Program(), Program()
_static = False


def default_main_program() -> Program:
    """The Program that is being built: what is run many times."""
    return _main


def default_startup_program() -> Program:
    """The Program that gives parameters their first values: what is run once."""
    return _startup


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Build into these Programs inside the block."""
    global _main, _startup
    outside = _main, _startup
    _main, _startup = main_program, startup_program or _startup
    try:
        yield
    finally:
        _main, _startup = outside


def enable_static() -> None:
    """Make what has no value to go by (layers, constants) part of the default Programs."""
    global _static
    _static = True


def disable_static() -> None:
    """Make what has no value to go by (layers, constants) eagerly; so it is at the start."""
    global _static
    _static = False


def in_dynamic_mode() -> bool:
    """Whether values are made eagerly."""
    return not _static


@contextmanager
def static_mode() -> Iterator[None]:
    """Make layers and constants part of the default Programs inside the block."""
    global _static
    outside, _static = _static, True
    try:
        yield
    finally:
        _static = outside
