"""Inputs for an operator: as the user says, or found by trying shapes and ranges until it runs."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np

from app.checking.checks.bounds import index_outside
from app.checking.finding import Found
from app.checking.subject import Input, Subject
from app.custom.calling import ReturnedError, summary_of
from app.errors import BoundsError, ConfigError, OperatorError, ReadOnlyError

_FIRST: tuple[tuple[int, ...], ...] = ((4, 6), (6,), (4, 3, 6), (4, 2, 5, 6))
_OTHERS: tuple[tuple[int, ...], ...] = ((6,), (6, 6), (6, 3), (1,), (), (4, 1), (4,), (3,), (3, 6), (2,))
_RANGES = ((-2.0, 2.0), (0.1, 2.0), (-0.9, 0.9), (1.1, 3.0))
_UNDEFINED = re.compile(r"name '\w+' is not defined|^module '[\w.]+' has no attribute|Untyped (?:global|freevar) name")
_NEVER_COMPILED = ("UnsupportedError", "UnsupportedBytecodeError", "UnsupportedParforsError")
"""Numba's errors that do not depend on the types of arguments."""
_TRIES = 400
_NO_GRADIENT, _ALL_WELL = 1, 4
_SECONDS = 20
"""How long shapes are tried. Numba compiles a function for each number of axes."""


def inputs_for(
    found: Found,
    shapes: Sequence[tuple[tuple[int, ...], str]] = (),
    settings: dict[str, Any] | None = None,
    like: str = "",
    within: tuple[float, float] | None = None,
) -> Subject:
    """The operator with inputs that it runs on, if possible forward and backward; an OperatorError says why not."""
    given = settings or {}
    names = _names(found, given, len(shapes))
    if within is not None:
        _check_range(*within)
    if shapes:
        if len(shapes) != len(names):
            raise ConfigError(
                f"--shape was given {len(shapes)} times, but {found.name} takes {len(names)}: {', '.join(names)}"
            )
        guesses = [[[Input(n, s, d) for n, (s, d) in zip(names, shapes, strict=True)]]]
    else:
        free = [name for name in names if name not in found.shapes]
        fixed = [Input(name, shape) for name, shape in found.shapes.items()]
        guesses = [[[*kinds, *fixed] for kinds in islice(some(free), _TRIES)] for some in (_floats, _with_integers)]
    ranges = [within] if within else _RANGES
    subject = _first_that_runs(found, guesses, given, like or found.like, ranges)
    return replace(subject, is_fixed=bool(shapes), like=subject.like or _declared(subject))


def _check_range(low: float, high: float) -> None:
    if not low < high:
        raise ConfigError(f"the range {low:g},{high:g}: the first number must be below the second")
    if not math.isfinite(high - low):
        raise ConfigError(f"the range {low:g},{high:g}: expected finite numbers, less than 1e308 apart")


def _declared(subject: Subject) -> str:
    """The `like` of the only operator that a function applies; '' if there are several."""
    try:
        definitions = subject.definitions()
    except Exception:  # a function that does not take Variables may raise anything; a check reports it
        return ""
    return definitions[0].like if len(definitions) == 1 else ""


def _names(found: Found, settings: dict[str, Any], shapes: int) -> list[str]:
    """The parameters that are inputs: those without a default that the user did not set."""
    by_name = [p.name for p in found.parameters]
    for name in settings:
        if name not in by_name:
            raise ConfigError(f"{found.name} has no parameter {name!r} to set; it takes {', '.join(by_name)}")
    names: list[str] = []
    for parameter in found.parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{i}" for i in range(max(1, shapes - len(names)))]
        elif parameter.default is not parameter.empty or parameter.name in settings:
            continue
        elif parameter.kind is parameter.KEYWORD_ONLY:
            raise ConfigError(f"{found.name} needs its setting {parameter.name!r}: give --set {parameter.name}=VALUE")
        else:
            names.append(parameter.name)
    if not names:
        raise ConfigError(f"{found.name} takes no input; nothing can be checked")
    return names


def _floats(names: list[str]) -> Iterator[list[Input]]:
    """Shapes to try, the likeliest first: all equal, then others beside a first input with rows."""
    for first in _FIRST:
        yield [Input(name, first) for name in names]
    for others in product((_FIRST[0], *_OTHERS), repeat=len(names) - 1):
        yield [Input(n, s) for n, s in zip(names, (_FIRST[0], *others), strict=True)]


def _with_integers(names: list[str]) -> Iterator[list[Input]]:
    """Whole numbers beside a first input with rows: labels, indices, masks."""
    for others in product(((4,), (4, 6), (4, 1)), repeat=len(names) - 1):
        rest = [Input(n, s, "int64") for n, s in zip(names[1:], others, strict=True)]
        yield [Input(names[0], _FIRST[0]), *rest]


def _first_that_runs(
    found: Found,
    guesses: list[list[list[Input]]],
    settings: dict[str, Any],
    like: str,
    ranges: Sequence[tuple[float, float]],
) -> Subject:
    """The first inputs on which everything works, else the best. Later groups are tried if no earlier input ran."""
    best: tuple[int, Subject] | None = None
    outside: BoundsError | None = None
    why, end = "", time.monotonic() + _SECONDS
    for kinds in guesses:
        for inputs in kinds:
            if why and time.monotonic() > end:
                break
            try:
                score, subject = _in_best_range(Subject(found, tuple(inputs), settings=settings, like=like), ranges)
            except ReadOnlyError:
                raise  # the inputs make no difference
            except Exception as error:
                if _is_of_the_code(error):
                    raise OperatorError(summary_of(error)) from error
                outside = outside or (error if isinstance(error, BoundsError) else None)
                why = why or f"{', '.join(map(str, inputs))}: {summary_of(error)}"
                continue
            if best is None or score > best[0]:
                best = score, subject
            if score == _ALL_WELL:
                return subject
            if score == _NO_GRADIENT:  # whatever the inputs
                return best[1]
        if best is not None:
            return best[1]
    if outside is not None:
        raise outside
    raise OperatorError(
        f"no inputs were found that it runs on. With {why}. Say their shapes, --shape 4,8 --shape 8 (one for each "
        "input, 4:int64 for whole numbers), the numbers that they are drawn from, --range=-1,1, and settings with "
        "--set name=value"
    )


def _is_of_the_code(error: BaseException) -> bool:
    """Whether an error is in the function itself, so that other inputs would not help."""
    for seen in _causes(error):
        undefined = isinstance(seen, NameError) and not isinstance(seen, UnboundLocalError)
        if undefined or isinstance(seen, (ImportError, ReturnedError)) or _UNDEFINED.search(str(seen)):
            return True
        if type(seen).__name__ in _NEVER_COMPILED:
            return True
    return False


def _is_of_the_types(error: BaseException) -> bool:
    """Whether Numba does not compile a function for the types of its arguments, so that a range makes no difference."""
    return any(type(seen).__module__.startswith("numba.") for seen in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what caused it."""
    while error is not None:
        yield error
        error = error.__cause__


def _in_best_range(subject: Subject, ranges: Sequence[tuple[float, float]]) -> tuple[int, Subject]:
    """The score of an operator, with inputs from the first range in which everything works, else the best one."""
    best: tuple[int, Subject] | None = None
    problems: list[str] = []
    refused: Exception | None = None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for low, high in ranges:
            tried = replace(subject, low=low, high=high, narrowed=problems[0] if problems else "")
            try:
                score, problem = _score(tried)
            except Exception as error:  # it may not accept these numbers, or this shape
                if _is_of_the_code(error):
                    raise
                if refused is None and best is None and _is_of_the_types(error):
                    raise
                refused, score, problem = refused or error, 0, f"gave an error: {summary_of(error)}"
            problems.append(f"inputs from [{low:g}, {high:g}] {problem}")
            if score and (best is None or score > best[0]):
                best = score, tried
            if score in (_NO_GRADIENT, _ALL_WELL):
                break
    if best is None:
        assert refused is not None
        raise refused
    return best


def _score(subject: Subject) -> tuple[int, str]:
    """The score of an operator on its inputs, and what does not work.

    1: it gives results without gradients; 2: its gradient raises an error; 3: gradients, too; 4: and all of them are
    finite.
    """
    outside = index_outside(subject)
    if outside is not None:  # compiled code would write there
        raise outside
    arrays = subject.arrays()
    tensors = subject.tensors(arrays)
    outputs = subject.applied(tensors)
    found = [t._array for t in outputs]
    bad = next((o for o in found if o.dtype.kind == "f" and not np.isfinite(o).all()), None)
    problem = "" if bad is None else f"gave {_not_finite(subject, arrays, bad)}"
    try:
        gradients = subject.gradients(tensors, outputs)
    except Exception as error:
        return 2, f"gave an error in the gradient: {summary_of(error)}"
    if any(g is None for g in gradients):
        return _NO_GRADIENT, "gave no gradient"
    return (3, problem) if problem else (_ALL_WELL, "")


def _not_finite(subject: Subject, arrays: Sequence[np.ndarray], output: np.ndarray) -> str:
    """`NaN at x = -1.5`: the first result that is not finite, and its input if that is known."""
    place = tuple(np.argwhere(~np.isfinite(output))[0])
    what = "NaN" if np.isnan(output[place]) else "inf"
    pairs = zip(subject.inputs, arrays, strict=True)
    given = [f"{one.name} = {array[place]:.4g}" for one, array in pairs if array.shape == output.shape]
    return f"{what} at {', '.join(given)}" if given else what
