"""Calling a user's function: with read-only arrays, with its result checked and its errors explained.

Shapes and types of what it returns are found by running it on small arrays of ones.
"""

from __future__ import annotations

import builtins
import difflib
import inspect
import linecache
from collections.abc import Callable, Mapping, Sequence
from math import prod
from traceback import walk_tb
from typing import Any

import numpy as np

from app.custom.read_only import ADVICE, call_watched, looking, read_only
from app.errors import AppError, DtypeError, OperatorError, ReadOnlyError, add_note
from app.functions import function_name, python_function
from app.ops.definition import OpDef
from app.ops.dtype import NAMES
from app.ops.size import AnySize, Size, named_size, names_of
from app.ops.spec import UNKNOWN, Spec
from app.reading import is_users, place, user_line
from app.tensor.modes import Modes, modes, set_modes


def require_callable(function: Any, role: str, label: str) -> None:
    """Raise an error for something that is not a function when an operator is registered, not when it first runs."""
    if not callable(function):
        raise OperatorError(f"{label}: {role} must be a function, found {function!r} ({type(function).__name__})")


def call_function(
    function: Callable[..., Any],
    operator: OpDef | str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    about: str = "",
) -> Any:
    """Call a user's function. An error names the operator; its cause is what the function raised.

    SystemExit and the like become errors, too: they would end the program without a message. The message begins with
    `about`.
    """
    try:
        if looking.on:
            return call_watched(function, args, kwargs)
        return function(*args, **kwargs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        label = about + (operator if isinstance(operator, str) else operator.label)
        raise _explained(error, label, function) from error


def let_through(
    function: Callable[..., Any],
    operator: OpDef,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    about: str = "",
) -> Any:
    """Call a user's function. What it raises itself passes unchanged, with a note that names the operator.

    The framework's errors raised inside it, such as wrong shapes, get the operator's label.
    """
    try:
        return function(*args, **kwargs)
    except AppError as error:
        raise _explained(error, about + operator.label, function) from error
    except Exception as error:
        add_note(error, f"{about}{operator.label}: raised in its function {function_name(function)}")
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _explained(error, about + operator.label, function) from error


def _explained(error: BaseException, label: str, function: Callable[..., Any]) -> AppError:
    """An error that names the operator, its function and the line at which another error was raised."""
    name = function_name(function)
    if isinstance(error, AppError):
        return type(error)(f"{label}: in its function {name}: {error}")
    hint = ""
    if isinstance(error, ValueError) and "ambiguous" in str(error):
        hint = " (a function of one number needs custom_op(elementwise=True))"
    if _is_of_numba(error):  # compiling a helper failed
        from app.engine.compiled.read_only import where_it_writes, why_refused

        place = where_it_writes(error)
        if place is not None:
            return ReadOnlyError(f"{label}: its function {name} writes into an array that it is given{place}; {ADVICE}")
        return OperatorError(
            f"{label}: Numba cannot compile its function {name}: {why_refused(error, inspect.unwrap(function))}"
        )
    message = f"{label}: its function {name} raised {described(error)}{hint}{_line_of(error, function)}"
    if isinstance(error, ValueError) and "read-only" in str(error):  # NumPy has several messages, all with this word
        return ReadOnlyError(f"{message}; {ADVICE}")
    if isinstance(error, SystemExit):
        message += "; only the program around an operator may end it"
    return OperatorError(message)


def _is_of_numba(error: BaseException) -> bool:
    return isinstance(error, Exception) and type(error).__module__.startswith("numba.")


def described(error: BaseException) -> str:
    """The kind and the message of an error; without a message, the source of the line that raised it."""
    if _is_of_numba(error):
        from app.engine.compiled.read_only import why_refused

        return f"Numba cannot compile it: {why_refused(error)}"
    line = linecache.getline(*_places(error)[-1]).strip() if not str(error) else ""
    return f"{type(error).__name__}: {(line and f'`{line}`') or error}{suggestion(error)}"


def suggestion(error: BaseException) -> str:
    """`; did you mean 'exp'?` of a misspelt attribute or variable, or how to order decorators; '' otherwise."""
    if isinstance(error, TypeError) and "The decorated object is not a function" in str(error):  # in Numba's words
        return "; write @njit below the decorator that makes an operator"
    name = getattr(error, "name", None)
    if isinstance(error, AttributeError) and error.obj is not None:
        names = dir(error.obj)
    elif isinstance(error, NameError) and error.__traceback__ is not None:
        frame = [frame for frame, _ in walk_tb(error.__traceback__)][-1]
        names = [*frame.f_locals, *frame.f_globals, *dir(builtins)]
    else:
        return ""
    closest = difflib.get_close_matches(name, names, 1, cutoff=0.75) if name else []
    return f"; did you mean {closest[0]!r}?" if closest else ""


def summary_of(error: BaseException) -> str:
    """One line on an error of a user's code: its kind, its message and the user's line."""
    message = str(error) if isinstance(error, AppError) else described(error) + place_raised(error)
    return " ".join(message.split())[:400]


def place_raised(error: BaseException) -> str:
    """` (my_ops.py:7)`: the last line of the user's code in the traceback of an error; '' if there is none."""
    line = user_line(error.__traceback__)
    return f" ({place(*line)})" if line else ""


def _places(error: BaseException) -> list[tuple[str, int]]:
    """The files and lines of a traceback."""
    return [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]


def _line_of(error: BaseException, function: Callable[..., Any]) -> str:
    """` (my_ops.py:7)`: the last line of the user's function's file in the traceback; '' if there is none."""
    file = getattr(getattr(inspect.unwrap(python_function(function)), "__code__", None), "co_filename", None)
    lines = [line for raised_in, line in _places(error) if raised_in == file]
    return f" ({place(file, lines[-1])})" if file and lines and is_users(file) else ""


class ReturnedError(OperatorError):
    """A function returned the wrong number of values, or something that is not a number or an array."""


class ReturnedTypeError(ReturnedError, DtypeError):
    """A function returned something that is not a number or an array."""


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """The values of an engine, NumPy scalars included, as the read-only arrays that a user's function gets."""
    return [v if v is None else read_only(np.asarray(v)) for v in values]


def returned_arrays(
    result: Any, expected: int, label: str, function: Callable[..., Any], optional: bool = False, hint: str = ""
) -> list[Any]:
    """What a function returned, one value or a tuple or list of them, as `wanted` arrays; with `optional` also None.

    `hint` ends the error for another number of values.
    """
    if expected == 0 and result is None:
        return []
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != expected:
        hint = hint or ("; make one array of a list, np.array(values)" if isinstance(result, list) else "")
        raise ReturnedError(
            f"{label}: its function {function_name(function)} returned {_counted(len(results))}, expected {expected}, "
            f"one for each {'input' if optional else 'output'}{hint}"
        )
    return [
        None if optional and value is None else _own_array(value, place, label, function)
        for place, value in enumerate(results)
    ]


def _counted(number: int) -> str:
    return f"{number} value" if number == 1 else f"{number} values"


def _own_array(value: Any, place: int, label: str, function: Callable[..., Any]) -> np.ndarray:
    """A copy of a result, which may be an input, or a buffer that the function fills at each call."""
    try:
        array = np.array(value)
    except ValueError:  # rows of different lengths
        array = np.empty((), object)
    if array.dtype.name not in NAMES:
        kind = "None" if value is None else f"{type(value).__name__} ({array.dtype})"
        raise ReturnedTypeError(
            f"{label}: its function {function_name(function)} returned {kind} as output {place}, "
            f"expected an array of {', '.join(NAMES)}{'; a return may be missing' if value is None else ''}"
        )
    return array


# Shapes and types of results

_SIZES, _LARGER, _MOST_ELEMENTS = (2, 3, 5), (67, 17), 1_000_000
"""What an open size is replaced by, also by the first larger one whose arrays have at most this many elements.

Output sizes that change with it are open, too. So are those that are always 0, as n // 100 is.
"""


def infer_by_running(
    run: Callable[..., Sequence[np.ndarray]], specs: Sequence[Spec], advice: str = ""
) -> tuple[Spec, ...]:
    """The shapes and types that `run` returns for inputs of these Specs; `advice` ends the error if it fails."""
    sizes = [size for spec in specs for size in spec.shape]
    are_open = any(isinstance(size, Size) or size == UNKNOWN for size in sizes)
    samples = (*_SIZES, *[n for n in _LARGER if _elements(specs, n) <= _MOST_ELEMENTS][:1]) if are_open else _SIZES[:1]
    outside = modes()
    set_modes(Modes(outside.on, None))  # compute, even while a function is being traced
    try:
        results = [run(*[_example(spec, n) for spec in specs]) for n in samples]
    except ReadOnlyError:
        raise  # which inputs it gets makes no difference
    except AppError as error:
        raise OperatorError(f"run on arrays of ones, to learn what it returns, it failed: {error}{advice}") from error
    finally:
        set_modes(outside)
    names = {name for size in sizes for name in names_of(size)}
    size_name = names.pop() if len(names) == 1 and UNKNOWN not in sizes else None
    return tuple(_joined(each, samples, size_name) for each in zip(*results, strict=True))


def _elements(specs: Sequence[Spec], n: int) -> int:
    return sum(prod(_sample(size, n) for size in spec.shape) for spec in specs)


def _example(spec: Spec, n: int) -> np.ndarray:
    return np.ones([_sample(size, n) for size in spec.shape], spec.dtype)


def _sample(size: AnySize, n: int) -> int:
    """A size with n in place of every open size."""
    if isinstance(size, Size):
        return size.at(**dict.fromkeys(names_of(size), n))
    return n if size == UNKNOWN else size


def _joined(results: Sequence[np.ndarray], samples: Sequence[int], size_name: str | None) -> Spec:
    """The Spec of one output, from its arrays for each of the samples of the open sizes."""
    shapes = [result.shape for result in results]
    if len(set(map(len, shapes))) > 1:
        raise OperatorError(f"its output has shapes {' and '.join(map(str, shapes))} for different batch sizes")
    joined = tuple(_joined_size(sizes, samples, size_name) for sizes in zip(*shapes, strict=True))
    return Spec(joined, results[0].dtype.name)


def _joined_size(sizes: Sequence[int], samples: Sequence[int], size_name: str | None) -> Any:
    """One size of an output: constant, a multiple of the named size plus a number, or unknown."""
    if len(set(sizes)) == 1:
        return sizes[0] if sizes[0] or len(samples) == 1 else UNKNOWN
    if size_name is not None:
        step = (sizes[1] - sizes[0]) // (samples[1] - samples[0])
        size_of_name = step * named_size(size_name) + (sizes[0] - step * samples[0])
        if all(_sample(size_of_name, n) == size for n, size in zip(samples, sizes, strict=True)):
            return size_of_name
    return UNKNOWN
