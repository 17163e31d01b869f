"""Is the gradient of an operator right? Asked before a network is trained with it, and answered in a fraction of a
second; the answer is kept in the cache under the hash of the operator's source.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from app import numba_cache
from app.checking.checks.gradient import gradient
from app.checking.examples import inputs_for
from app.checking.finding import Found, found
from app.checking.subject import Subject
from app.checking.undisturbed import undisturbed
from app.checking.verdict import FAILED
from app.custom.pylayer import PyLayer
from app.custom.source_hash import source_hash
from app.errors import AppError
from app.files import read_file, write_whole
from app.nn import Layer
from app.ops.definition import OpDef
from app.ranks.same import framework

SECONDS, SECONDS_ELEMENTWISE = 1.0, 0.2
"""How long a check may take, and one of an operator on single numbers."""
_CALLS_FOR_EACH_ELEMENT, _TRIES = 4, 3
"""Finite differences take two calls for each element, at two sets of inputs; how often a call is timed."""
_PATIENCE = 20.0
"""Seconds after which a check that does not end is given up."""
_LARGEST = 100_000
_SHAPE = (4, 6)


class GradientCheck(msgspec.Struct, frozen=True):
    """What was found about a gradient."""

    state: Literal["agrees", "wrong", "surrogate", "unknown"]
    words: str
    """What finite differences show, in a sentence without a subject: of a wrong gradient how it is wrong, and where."""

    @property
    def wrong(self) -> bool:
        return self.state == "wrong"


AGREES = GradientCheck("agrees", "gradient agrees with finite differences")
_SURROGATE = GradientCheck("surrogate", "gradient is a declared surrogate, so finite differences do not judge it")


def check_gradient(
    operator: Callable[..., Any], name: str, settings: Mapping[str, Any] | None = None, width: int | None = None
) -> GradientCheck | None:
    """Hold the gradient of a custom operator against finite differences; None for a built-in operator.

    `width` is that of the layers that it stands between, for operators that fit no other. Nothing that training depends
    on changes, and what the operator prints is not shown.
    """
    thing = as_written(operator)
    if isinstance(thing, OpDef) and not thing.custom:
        return None
    file = _kept_in(thing, settings or {}, width)
    known = None if file is None else _read(file)
    if known is None:
        known = _checked(thing, name, dict(settings or {}), width)
        if file is not None and known.state != "unknown":  # the next time it may be known
            with suppress(OSError, AppError):  # a cache that cannot be written costs time alone
                file.parent.mkdir(exist_ok=True)
                write_whole(file, msgspec.json.encode(known))
    return known


def as_written(operator: Callable[..., Any]) -> Any:
    """What an operator was written as: the class of a PyLayer, which is used through its `apply`."""
    owner = getattr(operator, "__self__", None)
    return owner if isinstance(owner, type) and issubclass(owner, PyLayer) else operator


def _kept_in(thing: Any, settings: Mapping[str, Any], width: int | None) -> Path | None:
    """The file that keeps the answer; None where the operator's source cannot be read, or nothing can be kept."""
    folder = numba_cache.folder()
    try:
        source = source_hash(type(thing) if isinstance(thing, Layer) else thing)
    except AppError:
        return None
    text = "\n".join([_framework(), np.__version__, source, repr(sorted(settings.items())), str(width)])
    return None if folder is None else folder / "gradients" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


@lru_cache(maxsize=1)
def _framework() -> str:
    return framework()


def _read(file: Path) -> GradientCheck | None:
    try:
        return msgspec.json.decode(read_file(file, _LARGEST), type=GradientCheck)
    except (OSError, AppError, msgspec.DecodeError):
        return None


def _checked(thing: Any, name: str, settings: dict[str, Any], width: int | None) -> GradientCheck:
    def check() -> bytes:
        return msgspec.json.encode(_by_differences(thing, name, settings, width))

    for compiled in (False, True):  # not all that Numba knows is Python
        answer = undisturbed(check, _PATIENCE, compiled)
        done = msgspec.json.decode(answer, type=GradientCheck) if answer else _unknown("the check did not end")
        if done.state != "unknown":
            break
    return done


def _by_differences(thing: Any, name: str, settings: dict[str, Any], width: int | None) -> GradientCheck:
    try:
        subject = between_layers(found(thing, name), settings, width)
        if subject.changes:
            return _unknown("it gives other numbers each time")
        if subject.is_surrogate:
            return _SURROGATE
        if not subject.has_gradient:
            return _unknown("no gradient comes back")
        small = _small_enough(subject)
        if small is None:
            return _unknown("a call takes too long; `opsmith check` takes the time")
        wrong = [verdict.words for verdict in gradient(small) if verdict.state == FAILED]
    except Exception as error:
        return _unknown(str(error) if isinstance(error, AppError) else f"{type(error).__name__}: {error}")
    return GradientCheck("wrong", _how_wrong(wrong[0], small)) if wrong else AGREES


def _how_wrong(words: str, subject: Subject) -> str:
    """A check's words about a wrong gradient, beginning with how it is off, where that is known."""
    if len(subject.wanted) == 1:
        words = words.removeprefix(f"that of {subject.wanted[0]} is ")
    many, worst, *off = words.split("; ", 2)
    return f"gradient is wrong: {off[0]} ({many}; {worst})" if off else f"gradient is {many}; {worst}"


def _unknown(why: str) -> GradientCheck:
    return GradientCheck("unknown", f"gradient was not checked: {' '.join(why.split())[:300]}")


def between_layers(one: Found, settings: dict[str, Any], width: int | None) -> Subject:
    """The operator with inputs such as it gets between two layers."""
    names = [p.name for p in one.parameters if p.default is Parameter.empty and p.name not in settings]
    shapes = [_SHAPE, *([(2, width)] if width is not None else [])]
    for place, shape in enumerate(shapes):
        given = [(one.shapes.get(name, shape), "float64") for name in names]
        try:
            return inputs_for(one, given, settings)
        except AppError:
            if place == len(shapes) - 1:
                raise
    raise AssertionError("there is a shape to try")


def _small_enough(subject: Subject) -> Subject | None:
    """The operator on so few rows that the check ends in time; None where one row is too many."""
    limit = SECONDS_ELEMENTWISE if subject.found.elementwise else SECONDS
    for small in (subject, subject.with_batch(1)):
        numbers = sum(int(np.prod(one.shape)) for one in small.inputs if one.is_float)
        for _ in range(_TRIES):  # whatever else a machine does only makes a call longer
            began = time.perf_counter()
            small.outputs(small.arrays())
            if (time.perf_counter() - began) * _CALLS_FOR_EACH_ELEMENT * numbers < limit:
                return small
    return None
