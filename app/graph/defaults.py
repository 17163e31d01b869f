"""The Programs that statements build into, and whether values are made eagerly or in a Program.

What a `with` block chooses holds for the thread that is in it, or the asyncio task; what `enable_static` and
`disable_static` choose outside of such blocks holds for the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from app.graph.program import Program

_building = ContextVar("building", default=(Program(), Program()))

_static: bool | None = None  # None: nothing was chosen
_static_here: ContextVar[bool | None] = ContextVar("static_here", default=None)
"""What the block chose that this thread is in; None outside of any."""


def default_main_program() -> Program:
    """The Program that is being built: what is run many times."""
    return _building.get()[0]


def default_startup_program() -> Program:
    """The Program that gives parameters their first values: what is run once."""
    return _building.get()[1]


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Build into these Programs inside the block, in this thread."""
    outside = _building.get()
    _building.set((main_program, startup_program or outside[1]))
    try:
        yield
    finally:
        _building.set(outside)


def enable_static() -> None:
    """Make what has no value to go by (layers, constants) part of the default Programs."""
    _choose(True)


def disable_static() -> None:
    """Make what has no value to go by (layers, constants) eagerly; so it is where nothing is chosen."""
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
    """Whether values are made eagerly."""
    return not _chosen()


@contextmanager
def _mode(static: bool) -> Iterator[None]:
    outside = _static_here.get()
    _static_here.set(static)
    try:
        yield
    finally:
        _static_here.set(outside)


def static_mode() -> AbstractContextManager[None]:
    """Make layers and constants part of the default Programs inside the block, in this thread."""
    return _mode(True)


def dynamic_mode() -> AbstractContextManager[None]:
    """Make layers and constants eagerly inside the block, in this thread."""
    return _mode(False)


@contextmanager
def static_unless_chosen() -> Iterator[None]:
    """The same as `static_mode` in a program that never chose a mode, as it is in Paddle 1."""
    with static_mode() if _chosen() is None else nullcontext():
        yield
