"""The default Programs, and whether layers and constants are created eagerly or in a Program.

A `with` block affects only its thread or asyncio task. Outside of such blocks, `enable_static` and `disable_static`
affect the whole process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from app.graph.program import Program

_building = ContextVar("building", default=(Program(), Program()))

_static: bool | None = None  # None: not chosen
_static_here: ContextVar[bool | None] = ContextVar("static_here", default=None)
"""The mode of the `with` block that this thread is in; None outside of such blocks."""


def default_main_program() -> Program:
    """The Program that is being built, to be run many times."""
    return _building.get()[0]


def default_startup_program() -> Program:
    """The Program that initialises parameters, to be run once."""
    return _building.get()[1]


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Inside the block, use these as the default Programs of this thread."""
    previous = _building.get()
    _building.set((main_program, startup_program or previous[1]))
    try:
        yield
    finally:
        _building.set(previous)


def enable_static() -> None:
    """Create layers and constants in the default Programs from now on."""
    _choose(True)


def disable_static() -> None:
    """Create layers and constants eagerly from now on, as is the default."""
    _choose(False)


def _choose(static: bool) -> None:
    global _static
    if _static_here.get() is None:
        _static = static
    else:
        _static_here.set(static)


def _chosen() -> bool | None:
    here = _static_here.get()
    return _static if here is None else here


def in_dynamic_mode() -> bool:
    """Whether layers and constants are created eagerly."""
    return not _chosen()


@contextmanager
def _mode(static: bool) -> Iterator[None]:
    previous = _static_here.get()
    _static_here.set(static)
    try:
        yield
    finally:
        _static_here.set(previous)


def static_mode() -> AbstractContextManager[None]:
    """Inside the block, create layers and constants in the default Programs, in this thread."""
    return _mode(True)


def dynamic_mode() -> AbstractContextManager[None]:
    """Inside the block, create layers and constants eagerly, in this thread."""
    return _mode(False)


@contextmanager
def static_unless_chosen() -> Iterator[None]:
    """`static_mode`, unless the user has chosen a mode: static is the default of Paddle 1."""
    with static_mode() if _chosen() is None else nullcontext():
        yield
