"""A user's function as the kernel of an operator: called with arrays, its result checked, its errors explained.

What it returns is learned by running it on small arrays of ones.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from traceback import walk_tb
from typing import Any

import numpy as np

from app.custom.numba_functions import function_name, python_function
from app.custom.untouched import ADVICE, call_watched, looking, read_only
from app.errors import AppError, DtypeError, OperatorError, ReadOnlyError, add_note
from app.ops.definition import OpDef
from app.ops.dtype import NAMES
from app.ops.size import AnySize, Size, named_size, names_of
from app.ops.spec import UNKNOWN, Spec
from app.tensor.modes import Modes, modes, set_modes

_HERE = os.path.dirname(__file__)  # as code objects have it, symbolic links and all
_PACKAGE, _SHELF = os.path.dirname(_HERE) + os.sep, os.path.join(_HERE, "shelf") + os.sep


def registered_at() -> str:
    """File and line of the code that is registering an operator: a user's, or that of one on the shelf."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _is_machinery(file: str) -> bool:
    return file.startswith(_PACKAGE) and not file.startswith(_SHELF)


def require_callable(function: Any, role: str, label: str) -> None:
    """Refuse what is not a function where an operator is registered, not when it first runs."""
    if not callable(function):
        raise OperatorError(f"{label}: {role} must be a function, found {function!r} ({type(function).__name__})")


def call_function(
    function: Callable[..., Any],
    operator: OpDef | str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    about: str = "",
) -> Any:
    """Call a user's function. An error names the operator and keeps what the function raised as its cause.

    An `Exception` can be caught as what the function raised, too. What else it raises, such as SystemExit, would end
    the program without a word. `about` is put before its words.
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
    """Call a user's function; what it raises itself passes as it is, with a note that names the operator.

    Errors of the framework raised inside it, such as wrong shapes, get the operator's label.
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
    """An error that names the operator, the function and the line where another was raised."""
    name = function_name(function)
    if isinstance(error, AppError):
        return type(error)(f"{label}: in its function {name}: {error}")
    hint = ""
    if isinstance(error, ValueError) and "ambiguous" in str(error):
        hint = " (a function of one number needs custom_op(elementwise=True))"
    if isinstance(error, Exception) and type(error).__module__.startswith("numba."):  # as it compiled a helper
        from app.engine.compiled.read_only import where_it_writes, why_refused

        place = where_it_writes(error)
        if place is not None:
            return ReadOnlyError(f"{label}: its function {name} writes into an array that it is given{place}; {ADVICE}")
        return OperatorError(
            f"{label}: Numba cannot compile its function {name}: {why_refused(error, inspect.unwrap(function))}"
        )
    line = _line_of(error, function)
    words = f"{label}: its function {name} raised {type(error).__name__}: {error}{hint}{line}"
    if isinstance(error, ValueError) and "read-only" in str(error):  # as NumPy says in each of several ways
        return ReadOnlyError(f"{words}; {ADVICE}")
    if isinstance(error, SystemExit):
        words += "; only the program around an operator may end it"
    return _of_both_kinds(_builtin(type(error)), words)


def _line_of(error: BaseException, function: Callable[..., Any]) -> str:
    """` (my_ops.py:7)`: where in the function's own file the error was raised, or passed through; '' if nowhere."""
    file = getattr(getattr(inspect.unwrap(python_function(function)), "__code__", None), "co_filename", None)
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return f" ({os.path.basename(file)}:{lines[-1]})" if file and lines else ""


def _builtin(kind: type[BaseException]) -> type[BaseException]:
    """The nearest class of exceptions that Python itself has."""
    return next(k for k in kind.__mro__ if k.__module__ == "builtins")


def _of_both_kinds(kind: type[BaseException], words: str) -> OperatorError:
    """An OperatorError that is of another kind as well, where one class can be both."""
    if kind is Exception or issubclass(OperatorError, kind) or not issubclass(kind, Exception):
        return OperatorError(words)
    try:
        both = type("OperatorError", (OperatorError, kind), {"__str__": AppError.__str__})
        return both(words)
    except TypeError:  # an exception that is made of more than its words
        return OperatorError(words)


class OutputCountError(OperatorError):
    """A function that returned another number of values than there are outputs."""


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """What an engine holds (NumPy's scalars among it) as the read-only arrays that a user's function gets."""
    return [v if v is None else read_only(np.asarray(v)) for v in values]


def returned_arrays(
    result: Any, wanted: int, label: str, function: Callable[..., Any], optional: bool = False, hint: str = ""
) -> list[Any]:
    """What a function returned, one value or a tuple or list of them, as that many arrays, or None where `optional`.

    `hint` says how to declare another number of them.
    """
    if wanted == 0 and result is None:
        return []
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != wanted:
        raise OutputCountError(
            f"{label}: its function {function_name(function)} returned {_counted(len(results))}, expected {wanted}, "
            f"one for each {'input' if optional else 'output'}{hint}"
        )
    return [None if r is None and optional else _as_array(r, i, label, function) for i, r in enumerate(results)]


def _counted(number: int) -> str:
    return f"{number} value" if number == 1 else f"{number} values"


def _as_array(value: Any, position: int, label: str, function: Callable[..., Any]) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.empty((), object)
    if array.dtype.name not in NAMES:
        found = "None" if value is None else f"{type(value).__name__} ({array.dtype})"
        raise DtypeError(
            f"{label}: its function {function_name(function)} returned {found} as output {position}, "
            f"expected an array of {', '.join(NAMES)}{'; is its return missing?' if value is None else ''}"
        )
    return array if array.flags.writeable else array.copy()  # it may be what was given, or a view of it


# What it returns, before there are values

_SIZES = (2, 3, 5)
"""What an open size is taken to be: output sizes that change with it are open too."""


def infer_by_running(
    run: Callable[..., Sequence[np.ndarray]], specs: Sequence[Spec], advice: str = ""
) -> tuple[Spec, ...]:
    """The shapes and types that `run` returns for inputs of these Specs; `advice` ends the error where it fails."""
    sizes = [size for spec in specs for size in spec.shape]
    are_open = any(isinstance(size, Size) or size == UNKNOWN for size in sizes)
    outside = modes()
    set_modes(Modes(outside.on, None))  # these Tensors are run, whatever is being traced
    try:
        results = [run(*[_example(spec, n) for spec in specs]) for n in (_SIZES if are_open else _SIZES[:1])]
    except ReadOnlyError:
        raise  # whatever it is given
    except AppError as error:
        raise OperatorError(f"run on arrays of ones, to learn what it returns, it failed: {error}{advice}") from error
    finally:
        set_modes(outside)
    names = {name for size in sizes for name in names_of(size)}
    size_name = names.pop() if len(names) == 1 and UNKNOWN not in sizes else None
    return tuple(_joined(each, size_name) for each in zip(*results, strict=True))


def _example(spec: Spec, n: int) -> np.ndarray:
    return np.ones([_sample(size, n) for size in spec.shape], spec.dtype)


def _sample(size: AnySize, n: int) -> int:
    """A size where every open size is n."""
    if isinstance(size, Size):
        return size.at(**dict.fromkeys(names_of(size), n))
    return n if size == UNKNOWN else size


def _joined(results: Sequence[np.ndarray], size_name: str | None) -> Spec:
    """What one output is, from what it was for each of `_SIZES`."""
    shapes = [result.shape for result in results]
    if len(set(map(len, shapes))) > 1:
        raise OperatorError(f"its output has {' and '.join(map(str, shapes))} as shapes, for different batch sizes")
    return Spec(tuple(_joined_size(sizes, size_name) for sizes in zip(*shapes, strict=True)), results[0].dtype.name)


def _joined_size(sizes: Sequence[int], size_name: str | None) -> Any:
    """A size that is the same each time; or the multiple of the named size, plus a number, that it was each time."""
    if len(set(sizes)) == 1:
        return sizes[0]
    if size_name is not None:
        steps = sizes[1] - sizes[0]
        found = steps * named_size(size_name) + (sizes[0] - steps * _SIZES[0])
        if all(_sample(found, n) == size for n, size in zip(_SIZES, sizes, strict=True)):
            return found
    return UNKNOWN
