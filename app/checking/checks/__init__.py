"""The checks, in the order in which they are told."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from app.checking.checks.bounds import bounds
from app.checking.checks.engines import engines, inlined
from app.checking.checks.gradient import gradient, linear, second, settings
from app.checking.checks.likeness import like
from app.checking.checks.manners import layout, repeatable, row_by_row, untouched
from app.checking.checks.numbers import large, odd
from app.checking.checks.shapes import broadcasting, empty, shapes, types
from app.checking.subject import Subject
from app.checking.verdict import Verdict, failed
from app.errors import AppError

CHECKS: dict[str, Callable[[Subject], Iterable[Verdict]]] = {
    "bounds": bounds,
    "gradient": gradient,
    "proportional": linear,
    "settings": settings,
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
"""Each check by its name."""


def examine(subject: Subject, only: Collection[str] = ()) -> Iterator[Verdict]:
    """The verdicts of all checks, or of those named. What the operator raises in one is its failure.

    An operator that indexes outside of its arrays is not run any further: it would write there.
    """
    for name, check in CHECKS.items():
        if only and name not in only and check is not bounds:
            continue
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = list(check(subject))
        except Exception as error:  # the user's function may raise whatever it likes
            kind = "" if isinstance(error, AppError) else f"{type(error).__name__}: "
            found = [failed(kind + " ".join(str(error).split())[:400])]
        for verdict in found:
            if not only or name in only or verdict.failed:
                yield replace(verdict, check=name)
        if check is bounds and any(verdict.failed for verdict in found):
            return
