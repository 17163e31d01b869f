"""Functions that Numba would compile run as Python, where a test is not about machine code: compiling takes longest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from app.checking.checks import CHECKS, Check
from app.checking.subject import Subject
from app.checking.verdict import Verdict
from app.custom.numba_functions import interpreted


@contextmanager
def as_python(on: bool = True) -> Iterator[None]:
    """As in the process in which a check looks for indices outside of arrays; not for functions that close over others
    of Numba, which would stay Python."""
    before, interpreted.on = interpreted.on, on
    try:
        yield
    finally:
        interpreted.on = before


@contextmanager
def only_engines_compile() -> Iterator[None]:
    """The same, except in the checks of the engines."""

    def compiled(check: Check) -> Check:
        def verdicts(subject: Subject) -> Iterator[Verdict]:
            with as_python(False):
                yield from check.verdicts(subject)

        return replace(check, verdicts=verdicts)

    with as_python(), pytest.MonkeyPatch.context() as patch:
        for name in ("engines", "inlined"):
            patch.setitem(CHECKS, name, compiled(CHECKS[name]))
        yield


@pytest.fixture
def uncompiled() -> Iterator[None]:
    with as_python():
        yield
