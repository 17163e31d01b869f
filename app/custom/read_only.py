"""Users' functions cannot change their inputs, which others still read, in any mode or engine.

They get read-only arrays. NumPy raises an error for a write, and Numba does not compile one. Writes that both miss,
such as those of a `guvectorize` kernel that plain Python calls, are looked for in the step that warms up a training.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, update_wrapper
from typing import Any

import numpy as np

from app.custom.numba_functions import Current, as_python, interpreted
from app.errors import BoundsError, OperatorError, ReadOnlyError
from app.functions import is_compiled

ADVICE = (
    "the inputs of an operator are read-only, because others read them: "
    "write into a copy (y = x.copy()), or compute a new array"
)


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view of an array, which cannot be made writable again."""
    return np.asarray(array.data.toreadonly())


# Numba's functions


class Guarded:
    """A Numba function that cannot change the arrays that it gets.

    It is compiled for read-only, contiguous arrays; others are copied. If the compiled code does not prove that it only
    reads, it gets copies of all.

    Given arrays of different shapes, it is compiled such that it checks indices: one may be too small for the others.
    """

    def __init__(self, function: Any):
        update_wrapper(self, function.py_func)
        self.py_func = function.py_func
        self._function, self._checking = for_any_types(function), checking_indices(function)
        parameters = inspect.signature(function.py_func).parameters
        self._names = tuple(parameters)
        self._defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
        self._copies: dict[Any, Current[dict[Any, Callable[[np.ndarray], np.ndarray] | None]]] = {
            each: Current(each, dict) for each in (self._function, self._checking)
        }
        """For each function, and combination of argument kinds, what copies the arrays; None if they need no copy."""

    def __call__(self, /, *values: Any, **settings: Any) -> Any:
        if settings or len(values) != len(self._names):
            values = self._in_order(values, settings)
        if interpreted.on:
            return as_python(self.py_func, values)
        values = tuple([_contiguous(v) if isinstance(v, np.ndarray) else v for v in values])
        shapes = {v.shape for v in values if isinstance(v, np.ndarray)}
        function = self._function if len(shapes) <= 1 else self._checking
        copies, key = self._copies[function].get(), tuple([_kind(value) for value in values])
        if key not in copies:
            copies[key] = _examined(function, values)
        copy = copies[key]
        if copy is not None:
            values = tuple([copy(v) if isinstance(v, np.ndarray) else v for v in values])
        try:
            return function(*values)
        except IndexError as error:
            if type(error) is not IndexError:  # NumPy's AxisError is one
                raise
            given = " and ".join(str(list(v.shape)) for v in values if isinstance(v, np.ndarray))
            raise BoundsError(f"{error}, given arrays of shapes {given}") from error

    def _in_order(self, values: Sequence[Any], settings: Mapping[str, Any]) -> tuple[Any, ...]:
        by_name = {**self._defaults, **dict(zip(self._names, values, strict=False)), **settings}
        if len(values) > len(self._names) or by_name.keys() != set(self._names):
            inspect.signature(self.py_func).bind(*values, **settings)  # raises the error that names the parameter
        return tuple([by_name[name] for name in self._names])


def _examined(function: Any, values: Sequence[Any]) -> Callable[[np.ndarray], np.ndarray] | None:
    """Compile a function for these kinds of values; gives what copies its arrays, or None."""
    from numba import typeof  # imported late: it takes half a second

    from app.engine.compiled.read_only import where_it_writes
    from app.engine.compiled.shape_errors import compiled_quickly

    signature = tuple(typeof(read_only(v) if isinstance(v, np.ndarray) else v) for v in values)
    try:
        with compiled_quickly():
            function.compile(signature)
    except Exception as error:
        place = where_it_writes(error)
        if place is not None:
            raise ReadOnlyError(f"it writes into an array that it is given{place}; {ADVICE}") from error
        return np.copy  # a helper may have been compiled for writable arrays
    return None if function._cache.only_reads(signature) else _read_only_copy


def _contiguous(array: np.ndarray) -> np.ndarray:
    return array if array.flags.c_contiguous and array.flags.aligned else read_only(array.copy(order="C"))


def _read_only_copy(array: np.ndarray) -> np.ndarray:
    return read_only(array.copy())


def _kind(value: Any) -> Any:
    """The properties of a value that Numba compiles for."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.writeable
    from numba import typeof

    return typeof(value)


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function on arrays, made such that it cannot change the read-only arrays that it gets."""
    return Guarded(function) if is_compiled(function) else function


@lru_cache(maxsize=128)
def for_any_types(function: Any, **options: bool) -> Any:
    """A copy of a Numba function that compiles for any argument types, even if that was declared with signatures.

    What it compiles is kept on disk. Its error model is explicit, because a function that is inlined into another would
    take over the caller's.
    """
    from numba import jit

    from app.engine.compiled.overloads import KeptOverloads

    all_options = {"error_model": "python", **function.targetoptions, **options}
    dispatcher = jit(locals=function.locals, **all_options)(function.py_func)
    dispatcher._cache = KeptOverloads(dispatcher)
    return dispatcher


def checking_indices(function: Any) -> Any:
    """A copy of a Numba function that raises an error for an index outside of an array.

    In one with `parallel=True`, Numba cannot raise errors, so that it stays as it is.
    """
    return for_any_types(function, **({} if function.targetoptions.get("parallel") else {"boundscheck": True}))


# Comparing the inputs before and after a call


class _Looking:
    """Whether inputs are compared now."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


looking = _Looking()


@contextmanager
def inputs_watched() -> Iterator[None]:
    """Inside the block, the inputs of users' functions are compared before and after each call."""
    outside, looking.on = looking.on, True
    try:
        yield
    finally:
        looking.on = outside


def call_watched(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function; an error says which of its arguments it changed."""
    before = [a.copy() if isinstance(a, np.ndarray) else None for a in args]
    result = function(*args, **kwargs)
    for place, (array, copy) in enumerate(zip(args, before, strict=True)):
        if copy is not None and array.tobytes() != copy.tobytes():
            raise OperatorError(
                f"it wrote into its argument {place + 1}, which others still read; compute a new array instead, or "
                "write into a copy"
            )
    return result
