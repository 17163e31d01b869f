"""A fast check of an operator before a network is trained with it: its gradient, whether it gives the same numbers each
time, and whether it keeps rows apart if it is declared to.

The result is cached under the hash of the operator's source, if that alone decides what the operator computes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from app import cache_folder
from app.checking.certificate import stored
from app.checking.checks.direction import Point, how_gradient_is_wrong
from app.checking.checks.gradient import gradient_of_size
from app.checking.examples import inputs_for
from app.checking.in_a_network import Place, differs_each_time, drawing_alike, in_a_network, mixes_rows
from app.checking.operators import UserOperator, user_operator
from app.checking.processes import End
from app.checking.subject import FLOAT32, Subject
from app.checking.undisturbed import undisturbed
from app.checking.verdict import FAILED
from app.custom.foreign import adapter_of, parts_of
from app.custom.pylayer import PyLayer
from app.engine.compiled.fingerprint import behaviour_fingerprint
from app.errors import AppError, BoundsError
from app.files import write_whole
from app.ops.definition import OpDef
from app.ranks.same import framework

SECONDS, SECONDS_ELEMENTWISE = 1.0, 0.2
"""The time limit of a check, and of a check of an elementwise operator, in seconds."""
_CALLS_FOR_EACH_ELEMENT, _TRIES = 4, 3
"""Finite differences take two calls per element at two sets of inputs; the number of timed calls."""
_PATIENCE = 20.0
"""Seconds after which an unfinished check is abandoned."""
_SHAPE = (4, 6)


class GradientCheck(msgspec.Struct, frozen=True):
    """The result of a gradient check."""

    state: Literal["agrees", "wrong", "surrogate", "unknown"]
    words: str
    """A sentence without a subject: for a wrong gradient, how and where it differs from finite differences."""
    mixes_rows: bool = False
    """Whether the results of a row depend on the other rows of a batch, as in a norm over the batch."""

    @property
    def wrong(self) -> bool:
        return self.state == "wrong"


AGREES = GradientCheck("agrees", "gradient agrees with finite differences")
_SURROGATE = GradientCheck("surrogate", "gradient is a declared surrogate, so finite differences do not judge it")


def check_gradient(
    operator: Callable[..., Any], name: str, settings: Mapping[str, Any] | None = None, place: Place | None = None
) -> GradientCheck | None:
    """Check the gradient of a custom operator against finite differences; None for a built-in operator.

    `place` is its place in a network, for which it is checked at the size and on the numbers there. The check does not
    affect training, and the operator's output is not shown.
    """
    thing = as_written(operator)
    if isinstance(thing, OpDef) and not thing.custom:
        return None
    file = _kept_in(thing, settings or {}, place)
    result = None if file is None else _read(file)
    if result is None:
        result = _checked(thing, name, dict(settings or {}), place)
        if file is not None and result.state != "unknown":  # it may be known the next time
            with suppress(OSError, AppError):  # an unwritable cache only costs time
                file.parent.mkdir(mode=0o700, exist_ok=True)
                write_whole(file, msgspec.json.encode(result))
                file.chmod(0o600)
    certificate = None if result.wrong else stored(operator, settings or {})
    return result if certificate is None else replace(result, words=f"{result.words}; {certificate.in_short}")


def as_written(operator: Callable[..., Any]) -> Any:
    """Return the object that the user wrote, such as the class of a PyLayer."""
    owner = getattr(operator, "__self__", None)
    return owner if isinstance(owner, type) and issubclass(owner, PyLayer) else operator


def _kept_in(thing: Any, settings: Mapping[str, Any], place: Place | None) -> Path | None:
    """Return the cache file; None if the operator's source cannot be read or does not decide alone, as with the
    attributes of an object, or if there is no cache."""
    folder = cache_folder.folder()
    try:
        source = behaviour_fingerprint(*parts_of(thing))
    except AppError:
        return None
    if source is None:
        return None
    declared = str(getattr(thing, "surrogate", False))  # which a call of `backward` outside of the source may say
    text = "\n".join(
        [_framework(), np.__version__, source, declared, repr(sorted(settings.items())), place.key if place else ""]
    )
    return None if folder is None else folder / "gradients" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


@lru_cache(maxsize=1)
def _framework() -> str:
    return framework()


def _read(file: Path) -> GradientCheck | None:
    try:
        return msgspec.json.decode(cache_folder.read(file), type=GradientCheck)
    except (OSError, AppError, msgspec.DecodeError):
        return None


def _checked(thing: Any, name: str, settings: dict[str, Any], place: Place | None) -> GradientCheck:
    for compiled in (False, True):  # not everything in Numba is Python, and Python may be too slow
        answer = undisturbed(
            partial(_examined, thing, name, settings, place, _PATIENCE / 2 if compiled else None),
            _PATIENCE,
            compiled,
            adapter_of(thing),
        )
        result: GradientCheck = _unknown(answer.problem) if isinstance(answer, End) else answer
        if isinstance(answer, End) and answer.crashed and compiled:  # so would training
            result = GradientCheck("wrong", answer.problem)
        if result.state != "unknown":
            break
    return result


def _examined(
    thing: Any, name: str, settings: dict[str, Any], place: Place | None, seconds: float | None
) -> GradientCheck:
    """Examine an operator, in about `seconds` if they are given, else in a fraction of a second."""
    try:
        one = user_operator(thing, name)
        limit = SECONDS_ELEMENTWISE if one.elementwise else SECONDS
        inputs = {} if place is None else {array.shape[1:]: array for array in place.inputs()}
        subject = between_layers(drawing_alike(one), settings, next(iter(inputs), None))
        if subject.precision is FLOAT32:  # the differences in a network are too small for it
            inputs = {}
        places = [in_a_network(one, settings, array, seconds or limit) for array in inputs.values()]
        if None in places:
            return _unknown(_TOO_SLOW)
        return _judged(one, subject, [at for at in places if at is not None], limit)
    except BoundsError as error:  # it would read or write other memory in training, too, or crash
        return GradientCheck("wrong", str(error))
    except Exception as error:
        return _unknown(str(error) if isinstance(error, AppError) else f"{type(error).__name__}: {error}")


def _judged(one: UserOperator, subject: Subject, places: Sequence[Point], seconds: float) -> GradientCheck:
    changes = subject.changes or next(filter(None, map(differs_each_time, places)), "")
    if changes:
        return GradientCheck("wrong", _OTHER_EACH_TIME.format(changes))
    mixes = any(mixes_rows(one, at) for at in places)
    if mixes and subject.is_row_by_row:
        return GradientCheck("wrong", _NOT_BY_ROW, mixes)
    if subject.is_surrogate:
        return replace(_SURROGATE, mixes_rows=mixes)
    if not subject.has_gradient:
        return _unknown("no gradient comes back")
    small = _small_enough(subject, seconds)
    if small is None and not places:
        return _unknown(_TOO_SLOW)
    wrong = [] if small is None else [v.words for v in gradient_of_size(small) if v.state == FAILED]
    if wrong and small is not None:
        return GradientCheck("wrong", _how_wrong(wrong[0], small), mixes)
    for at in places:
        difference = how_gradient_is_wrong(at)
        if difference:
            return GradientCheck("wrong", f"{_how_wrong(difference, subject)}; on {at.inputs} of the network", mixes)
    return replace(AGREES, mixes_rows=mixes)


_TOO_SLOW = "a call takes too long; `opsmith check` takes the time"
_OTHER_EACH_TIME = (
    "the same inputs give another {} each time, so that training cannot be repeated, and no gradient can be checked: "
    "draw random numbers with operators that follow the seed, such as opsmith.nn.functional.dropout, and keep nothing "
    "between calls"
)
_NOT_BY_ROW = (
    "it is declared row by row, but the rows of a batch give other numbers alone than together: remove "
    "row_by_row=True, or compute each row from itself"
)


def _how_wrong(message: str, subject: Subject) -> str:
    """Return a check's message about a wrong gradient, starting with the kind of error if known."""
    if len(subject.float_inputs) == 1:
        message = message.removeprefix(f"that of {subject.float_inputs[0]} is ")
    if "; " not in message:
        return f"gradient is wrong {message}"
    many, worst, *off = message.split("; ", 2)
    return f"gradient is wrong: {off[0]} ({many}; {worst})" if off else f"gradient is {many}; {worst}"


def _unknown(why: str) -> GradientCheck:
    return GradientCheck("unknown", f"gradient was not checked: {' '.join(why.split())[:300]}")


def between_layers(one: UserOperator, settings: dict[str, Any], shape: tuple[int, ...] | None) -> Subject:
    """Return the operator with inputs as between two layers, small ones if it takes them. `shape` is that of a row."""
    names = [p.name for p in one.parameters if p.default is Parameter.empty and p.name not in settings]

    def inputs_of(shape: tuple[int, ...]) -> Subject:
        return inputs_for(one, [(one.shapes.get(name, shape), "float64") for name in names], settings)

    if shape is None:
        return inputs_of(_SHAPE)
    try:
        return inputs_of(_SHAPE)
    except AppError:
        return inputs_of((2, *shape))


def _small_enough(subject: Subject, seconds: float) -> Subject | None:
    """Return the operator with few enough rows to finish in time; None if one row is too slow."""
    for small in (subject, subject.with_batch(1)):
        numbers = sum(int(np.prod(one.shape)) for one in small.inputs if one.is_float)
        for _ in range(_TRIES):  # other load can only make a call slower
            began = time.perf_counter()
            small.outputs(small.arrays())
            if (time.perf_counter() - began) * _CALLS_FOR_EACH_ELEMENT * numbers < seconds:
                return small
    return None
