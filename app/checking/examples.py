"""Inputs for an operator: as the user says, or found by trying shapes and ranges until it runs."""

from __future__ import annotations

import difflib
import linecache
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from traceback import walk_tb
from typing import Any

import numpy as np

from app.checking.checks.bounds import BackwardBoundsError, index_outside
from app.checking.operators import UserOperator
from app.checking.reasons import reason
from app.checking.subject import FLOAT32, FLOAT64, Input, Precision, Subject
from app.custom.calling import ReturnedError
from app.errors import BoundsError, ConfigError, CustomOperatorError, OperatorError, ReadOnlyError, ShapeError
from app.reading import is_users

_SHAPE = (4, 6)
"""The shape of the first input, unless the operator refuses it."""
_BESIDE = (
    ((4, 6), (4, 6)),
    ((6, 6), (6,)),
    ((6,), (6,)),
    ((6, 3), (3,)),
    ((4, 6), (6,)),
    ((4,), (4,)),
    ((4, 1), (4, 1)),
)
"""Shapes of the second and of further inputs beside it: equal ones, weights and a bias, one number for each row."""
_RARE = ((6,), (4, 3, 6), (4, 2, 5, 6), (6, 6), (17, 6))
"""Shapes of all inputs of an operator that runs on none of these."""
_LABELS = ((4,), (4, 6), (4, 1))
_RANGES = ((-2.0, 2.0), (0.1, 2.0), (-0.9, 0.9), (1.1, 3.0), (0.1, 0.9))
_UNDEFINED = re.compile(
    r"name '\w+' is not defined|^module '[\w.]+' has no attribute|Untyped (?:global|freevar) name|"
    r"^No [VJ][JV]P defined for custom_"
)
_NEVER_COMPILED = ("UnsupportedError", "UnsupportedBytecodeError", "UnsupportedParforsError")
"""Numba's errors that do not depend on the types of arguments."""


def inputs_for(
    operator: UserOperator,
    shapes: Sequence[tuple[tuple[int, ...], str]] = (),
    settings: dict[str, Any] | None = None,
    like: str = "",
    within: tuple[float, float] | None = None,
) -> Subject:
    """The operator with inputs on which forward runs; an OperatorError says why there are none."""
    known_settings = settings or {}
    names = _names(operator, known_settings, len(shapes))
    if within is not None:
        _check_range(*within)
    if shapes:
        if len(shapes) != len(names):
            raise ConfigError(
                f"--shape was given {len(shapes)} times, but {operator.name} takes {len(names)}: {', '.join(names)}"
            )
        guesses = [[[Input(n, s, d) for n, (s, d) in zip(names, shapes, strict=True)]]]
    else:
        free = [name for name in names if name not in operator.shapes]
        fixed = [Input(name, shape) for name, shape in operator.shapes.items()]
        guesses = [[[*inputs, *fixed] for inputs in group] for group in _guesses(free)]
    ranges = [within] if within else _RANGES
    first = partial(_first_that_runs, operator, guesses, known_settings, like or operator.like, ranges)
    subject = in_its_precision(operator, first)
    return replace(
        subject, is_fixed=bool(shapes), is_bounded=within is not None, like=subject.like or _declared(subject)
    )


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


_ARGUMENTS = ("shapes", "like", "within", "only", "also", "seed", "surrogate")
"""The arguments of `check` and `check_operator` that are no settings of an operator."""


def _names(operator: UserOperator, settings: dict[str, Any], shapes: int) -> list[str]:
    """The parameters that are inputs: those without a default that the user did not set."""
    by_name = [p.name for p in operator.parameters]
    for name in settings:
        if name not in by_name:
            closest = difflib.get_close_matches(name, [*by_name, *_ARGUMENTS], 1)
            hint = f"; did you mean {closest[0]!r}?" if closest and closest[0] != name else ""
            raise ConfigError(f"{operator.name} has no parameter {name!r} to set; it takes {', '.join(by_name)}{hint}")
    names: list[str] = []
    for parameter in operator.parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{i}" for i in range(max(1, shapes - len(names)))]
        elif parameter.default is not parameter.empty or parameter.name in settings:
            continue
        elif parameter.kind is parameter.KEYWORD_ONLY:
            raise ConfigError(
                f"{operator.name} needs its setting {parameter.name!r}: give --set {parameter.name}=VALUE"
            )
        else:
            names.append(parameter.name)
    if not names:
        raise ConfigError(f"{operator.name} takes no input; nothing can be checked{_of_context(operator)}")
    return names


def _of_context(operator: UserOperator) -> str:
    """What may be meant if an operator of another framework takes no input: the first parameter is not one."""
    kind = "" if operator.foreign is None else operator.foreign.kind
    if not kind.endswith(("autograd.Function", "PyLayer")):
        return ""
    return f": the first parameter of its forward ({operator.where}) is the context, as in forward(ctx, x)"


def _guesses(names: list[str]) -> Iterator[list[list[Input]]]:
    """Groups of inputs to try. A group is tried only if the operator runs on no inputs of the groups before it."""
    first, *others = names or [""]
    usual = {(second, *[further] * (len(others) - 1)): None for second, further in _BESIDE} if others else {(): None}
    yield [_inputs(names, [_SHAPE, *shapes]) for shapes in usual]
    for shape in _RARE:
        yield [_inputs(names, [shape] * len(names))]
    if others:
        yield [_inputs(names, [_SHAPE, *[()] * len(others)])]
        labels = [[Input(name, shape, "int64") for name in others] for shape in _LABELS]
        yield [[Input(first, _SHAPE), *integers] for integers in labels]


def _inputs(names: list[str], shapes: Sequence[tuple[int, ...]]) -> list[Input]:
    return [Input(name, shape) for name, shape in zip(names, shapes, strict=False)]


def in_its_precision(operator: UserOperator, find: Callable[[Precision], Subject]) -> Subject:
    """The inputs that are found in float64, or in float32 if an operator of another framework computes in that only."""
    try:
        subject = find(FLOAT64)
    except OperatorError as error:
        if operator.foreign is None:
            raise
        try:
            return find(FLOAT32)
        except OperatorError:
            raise error from None
    return subject.in_float32() if subject.computes_in_float32 else subject


def _first_that_runs(
    operator: UserOperator,
    guesses: list[list[list[Input]]],
    settings: dict[str, Any],
    like: str,
    ranges: Sequence[tuple[float, float]],
    precision: Precision,
) -> Subject:
    """The first inputs on which forward runs. Whatever happens to the gradient there is for the checks to say.

    Only if a gradient has another shape than its input, others of the same group are tried: forward of `x + b` also
    takes a `b` of the shape of x, and its backward is right for a row. Numbers from other ranges are tried in the first
    group, if forward runs on none of the usual ones.
    """
    outside: BoundsError | None = None
    why = own = narrowed = ""
    for start in range(len(ranges)):
        for group in guesses[:1] if start else guesses:
            first, refusal = None, ""
            for inputs in group:
                subject = Subject(
                    operator, tuple(inputs), settings=settings, like=like, narrowed=narrowed if start else ""
                )
                subject = subject.in_float32() if precision is FLOAT32 else subject
                try:
                    subject = _in_best_range(subject, ranges[start:])
                except (ReadOnlyError, BackwardBoundsError):
                    raise  # other inputs make no difference
                except Exception as error:
                    if _is_of_the_code(error):
                        raise OperatorError(reason(operator, error)) from error
                    is_of_arrays = any(isinstance(e, (TypeError, IndexError)) for e in _causes(error))
                    if operator.elementwise and is_of_arrays and not isinstance(error, BoundsError):
                        raise OperatorError(
                            f"{reason(operator, error)}; elementwise=True gives the function single numbers: leave it "
                            "out for a function of arrays"
                        ) from error
                    outside = outside or (error if isinstance(error, BoundsError) else None)
                    tried = ", ".join(map(str, inputs))
                    if not why and _is_raised_by_the_user(error):
                        own = f"{reason(operator, error)}; on {tried} and all other inputs that were tried"
                    why = why or f"{tried}: {reason(operator, error)}"
                    low, high = ranges[start]
                    narrowed = narrowed or f"inputs from [{low:g}, {high:g}] gave an error: {reason(operator, error)}"
                    continue
                misfit = _misfit(subject)
                if not misfit:
                    return replace(subject, reshaped=refusal)
                first, refusal = first or subject, refusal or f"with {', '.join(map(str, inputs))}, {misfit}"
            if first is not None:
                return first
    if outside is not None:
        raise outside
    if own:
        raise OperatorError(own)
    raise OperatorError(
        f"no inputs were found that it runs on. With {why}. Say their shapes, --shape 4,8 --shape 8 (one for each "
        "input, 4:int64 for whole numbers), the numbers that they are drawn from, --range=-1,1, and settings with "
        "--set name=value; in Python shapes=[(4, 8), (8,)], within=(-1, 1) and name=value"
    )


def _misfit(subject: Subject) -> str:
    """The message about a gradient of another shape than its input; '' if there is none."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject.run(subject.arrays())
    except ShapeError as error:
        return subject.reason(error)
    except Exception:  # a check reports it
        return ""
    return ""


_OF_THE_CODE = (ImportError, ReturnedError, CustomOperatorError)


def _is_of_the_code(error: BaseException) -> bool:
    """Whether an error is in the function itself, so that other inputs would not help."""
    for cause in _causes(error):
        undefined = isinstance(cause, NameError) and not isinstance(cause, UnboundLocalError)
        if undefined or isinstance(cause, _OF_THE_CODE) or _UNDEFINED.search(str(cause)):
            return True
        if type(cause).__name__ in _NEVER_COMPILED:
            return True
    return False


def _is_raised_by_the_user(error: BaseException) -> bool:
    """Whether a `raise` of the user's own refused the inputs: it says itself what it expects."""
    *_, first = _causes(error)
    *_, (frame, line) = [(None, 0), *walk_tb(first.__traceback__)]
    file = frame.f_code.co_filename if frame else ""
    return bool(file) and is_users(file) and linecache.getline(file, line).lstrip().startswith("raise")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what caused it."""
    while error is not None:
        yield error
        error = error.__cause__


def _in_best_range(subject: Subject, ranges: Sequence[tuple[float, float]]) -> Subject:
    """An operator with inputs from the first range in which its results are finite, else from the first one.

    It may raise there. Then other shapes are tried before other ranges.
    """
    best: Subject | None = None
    narrowed = subject.narrowed
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for low, high in ranges:
            tried = replace(subject, low=low, high=high, narrowed=narrowed)
            try:
                problem = _problem(tried)
            except Exception as error:  # it may not accept these numbers, or this shape
                if best is None or _is_of_the_code(error) or isinstance(error, BackwardBoundsError):
                    raise
                continue
            if not problem:
                return tried
            best = best or tried
            narrowed = narrowed or f"inputs from [{low:g}, {high:g}] {problem}"
    assert best is not None
    return best


def _problem(subject: Subject) -> str:
    """Which result of forward is not finite; '' if all are. Forward may raise; an empty result is an OperatorError."""
    outside = index_outside(subject)
    if outside is not None:  # compiled code would read or write there
        raise outside
    arrays = subject.arrays()
    outputs = subject.outputs(arrays)
    if not any(output.size for output in outputs):
        raise OperatorError(f"its result has shape {list(outputs[0].shape)}, so nothing can be compared")
    bad = next((o for o in outputs if o.dtype.kind == "f" and not np.isfinite(o).all()), None)
    return "" if bad is None else f"gave {_not_finite(subject, arrays, bad)}"


def _not_finite(subject: Subject, arrays: Sequence[np.ndarray], output: np.ndarray) -> str:
    """`NaN at x = -1.5`: the first result that is not finite, and its input if that is known."""
    place = tuple(np.argwhere(~np.isfinite(output))[0])
    what = "NaN" if np.isnan(output[place]) else "inf"
    pairs = zip(subject.inputs, arrays, strict=True)
    values = [f"{one.name} = {array[place]:.4g}" for one, array in pairs if array.shape == output.shape]
    return f"{what} at {', '.join(values)}" if values else what
