"""What tests of every room may ask for, and what they all take for granted."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, visitor
from installed import installed

__all__ = ["chromium", "installed", "visitor"]

ROOT = Path(__file__).parent
COMPILE_MUCH = ("checking/", "custom/", "derivative/", "engine/")

# Read when NumPy loads OpenBLAS, whose threads wait for each other most of the time where tests run side by side.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# As commands set it. If colorama is installed, Numba colours each of its errors, even those that it handles itself.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
# What users compiled and certified stays out: a certificate adds a line to reports.
os.environ["OPSMITH_CACHE"] = str(ROOT.parent / ".cache" / "tests")

# What is on the disk when the power fails is not tested here, and each file that is written would wait for the disk.
os.fsync = lambda handle: None

for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        # as of a suite in the background of a shell, or of `nohup`: the programs that it starts would ignore it, too
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _default_programs() -> Iterator[None]:
    """Every test begins with empty default Programs, whatever ran before it in its process."""
    from app.graph import Program, program_guard  # not above: it loads NumPy

    with program_guard(Program(), Program()):
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test is `quick` unless it is `slow` or `soak`, so that `-m quick` selects what runs within a minute.

    Forms of a test that are for the compiled engine are slow. The quick tests of a file run on one worker: what they
    share is made once, and pytest-xdist hands out files, not thousands of tests one by one. So do all tests of a file
    where operators are compiled, as another worker would compile the same functions again.
    """
    providers: Any = sys.modules.get("hypothesis.internal.conjecture.providers")
    if providers is not None:
        # Hypothesis would draw constants of the sources that are loaded: it would read them all, for seconds, and draw
        # other examples of a test when it runs alone.
        providers._get_local_constants = lambda: providers._local_constants
    for item in items:
        parameters = getattr(item, "callspec", None)
        if parameters and any(isinstance(value, str) and value == "compiled" for value in parameters.params.values()):
            item.add_marker(pytest.mark.slow)
        marks = {mark.name for mark in item.iter_markers()}
        quick = marks.isdisjoint({"slow", "soak"})
        if quick:
            item.add_marker(pytest.mark.quick)
        if "xdist_group" in marks:
            continue
        file = str(item.path).removeprefix(f"{ROOT}{os.sep}")
        if quick or file.startswith(COMPILE_MUCH):
            item.add_marker(pytest.mark.xdist_group(file))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect thousands of tests without a garbage collection, and leave them out of all later ones.

    They would take a sixth of the time, and compiling ends in a full one.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After each file, what it has imported and compiled is left out, too."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
