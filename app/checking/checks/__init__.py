"""The checks, in the order in which they run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from app.checking.checks.behaviour import layout, repeatable, row_by_row, untouched
from app.checking.checks.bounds import bounds
from app.checking.checks.engines import engines, inlined
from app.checking.checks.gradient import gradient, linear, second, settings
from app.checking.checks.likeness import like
from app.checking.checks.numbers import large, odd
from app.checking.checks.shapes import broadcasting, empty, shapes, types
from app.checking.checks.whole_numbers import whole_numbers
from app.checking.subject import Subject
from app.checking.verdict import Verdict, failed, note
from app.custom.calling import summary_of
from app.errors import ConfigError


def narrowed(subject: Subject) -> Iterator[Verdict]:
    """Why inputs are not drawn from the usual range, if they are not."""
    if subject.narrowed:
        yield note(f"{subject.narrowed}; checked on [{subject.low:g}, {subject.high:g}]")


CHECKS: dict[str, Callable[[Subject], Iterable[Verdict]]] = {
    "bounds": bounds,
    "range": narrowed,
    "gradient": gradient,
    "proportional": linear,
    "settings": settings,
    "whole numbers": whole_numbers,
    "second": second,
    "like": like,
    "shapes": shapes,
    "types": types,
    "broadcasting": broadcasting,
    "empty batch": empty,
    "untouched": untouched,
    "repeatable": repeatable,
    "rows": row_by_row,
    "layout": layout,
    "nan and inf": odd,
    "large numbers": large,
    "engines": engines,
    "inlined": inlined,
}
"""The checks by name."""


def check_names(only: Collection[str]) -> None:
    """Refuse names of no check: with such a name alone, nothing would be checked, and nothing would fail."""
    for name in only:
        if name not in CHECKS:
            raise ConfigError(f"there is no check {name!r}; there are {', '.join(CHECKS)}")


_COMPARE_RESULTS = {"gradient", "proportional", "settings", "whole numbers", "second"}
_COMPARE_RUNS = {"like", "types", "broadcasting", "rows", "layout", "nan and inf", "engines"}
"""The checks that compare the results of several runs, and those that also compare gradients."""
_NOTHING = {
    "range": "inputs are drawn from the usual range",
    "like": "there is no operator to compare with: name one with `like`",
}
"""What a check says that was asked for and does not apply."""


def examine(subject: Subject, only: Collection[str] = ()) -> Iterator[Verdict]:
    """The verdicts of all checks, or of those named, as they are known. An exception of the operator is a failure.

    An operator that indexes outside of its arrays is not run again, because it would write there. If an operator gives
    different numbers each time, checks that compare runs are left out, and `repeatable` says so.
    """
    names = [name for name in CHECKS if not only or name in only or name == "bounds"]
    for name in names:
        check = CHECKS[name]
        if (name in _COMPARE_RUNS and subject.changes) or (name in _COMPARE_RESULTS and subject.changes == "result"):
            if only and "repeatable" not in only:
                yield from _verdicts("repeatable", repeatable, subject)
                return
            continue
        found = list(_verdicts(name, check, subject))
        if not found and name in only:
            found = [replace(note(_NOTHING.get(name, "it does not apply to this operator")), check=name)]
        yield from (verdict for verdict in found if not only or name in only or verdict.failed)
        if check is bounds and any(verdict.failed for verdict in found):
            return


def _verdicts(name: str, check: Callable[[Subject], Iterable[Verdict]], subject: Subject) -> Iterator[Verdict]:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = list(check(subject))
    except Exception as error:  # the user's function may raise anything
        found = [failed(summary_of(error))]
    yield from (replace(verdict, check=name) for verdict in found)
