"""The Programs that statements build into, and whether values are made eagerly or in a Program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from app.graph.program import Program

_main, _startup = Program(), Program()
_static: bool | None = None  # None: nothing was chosen


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
    """Make what has no value to go by (layers, constants) eagerly; so it is where nothing is chosen."""
    global _static
    _static = False


def in_dynamic_mode() -> bool:
    """Whether values are made eagerly."""
    return not _static


@contextmanager
def _mode(static: bool) -> Iterator[None]:
    global _static
    outside, _static = _static, static
    try:
        yield
    finally:
        _static = outside


def static_mode() -> AbstractContextManager[None]:
    """Make layers and constants part of the default Programs inside the block."""
    return _mode(True)


def dynamic_mode() -> AbstractContextManager[None]:
    """Make layers and constants eagerly inside the block."""
    return _mode(False)


@contextmanager
def static_unless_chosen() -> Iterator[None]:
    """The same as `static_mode` in a program that never chose a mode, as it is in Paddle 1."""
    with static_mode() if _static is None else nullcontext():
        yield
