"""Users' functions leave alone what they are given, as others still read it: in every mode and on every engine.

They are given read-only arrays. NumPy refuses to write into these, and Numba to compile a function that would; what
either lets through (an address taken by `ctypes`, for one) is looked for in the step that warms up a training.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, update_wrapper, wraps
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from app.custom.numba_functions import as_python, interpreted
from app.errors import OperatorError, ReadOnlyError

ADVICE = (
    "others read what an operator is given, so it is read-only: "
    "write into a copy (y = x.copy()), or compute a new array"
)


def read_only(array: np.ndarray) -> np.ndarray:
    """An array that reads the memory of another, and from which there is no way back to one that may write."""
    return np.asarray(array.data.toreadonly())


# Numba's functions


class Guarded:
    """A function of Numba's that gets arrays which it cannot change.

    It is compiled for read-only arrays. Where the compiler does not show that it keeps to that, it is given copies.
    """

    def __init__(self, function: Any):
        update_wrapper(self, function.py_func)
        self.py_func = function.py_func
        self._function = for_any_types(function)
        parameters = inspect.signature(function.py_func).parameters
        self._names = tuple(parameters)
        self._defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
        self._given: dict[Any, Callable[[np.ndarray], np.ndarray] | None] = {}
        """For the kinds of values of a call what its arrays become; None where they can be given as they are."""

    def __call__(self, *values: Any, **settings: Any) -> Any:
        if settings or len(values) != len(self._names):
            values = self._in_order(values, settings)
        if interpreted.on:
            return as_python(self.py_func, values)
        kinds = tuple([_kind(value) for value in values])
        if kinds not in self._given:
            self._given[kinds] = self._examined(values)
        give = self._given[kinds]
        if give is not None:
            values = tuple([give(v) if isinstance(v, np.ndarray) else v for v in values])
        return self._function(*values)

    def _in_order(self, values: Sequence[Any], settings: Mapping[str, Any]) -> tuple[Any, ...]:
        known = {**self._defaults, **dict(zip(self._names, values, strict=False)), **settings}
        if len(values) > len(self._names) or known.keys() != set(self._names):
            inspect.signature(self.py_func).bind(*values, **settings)  # which says what is wrong
        return tuple([known[name] for name in self._names])

    def _examined(self, values: Sequence[Any]) -> Callable[[np.ndarray], np.ndarray] | None:
        """What is to become of the arrays; compiles the function for these kinds of values."""
        from numba import typeof  # imported late: a run without Numba's functions need not wait for it

        from app.engine.compiled.read_only import only_reads, where_it_writes

        signature = tuple(typeof(read_only(v) if isinstance(v, np.ndarray) else v) for v in values)
        try:
            self._function.compile(signature)
        except Exception as error:
            place = where_it_writes(error)
            if place is not None:
                raise ReadOnlyError(f"it writes into an array that it is given{place}; {ADVICE}") from error
            return np.copy  # a helper of it may have been compiled for arrays of another kind
        return None if only_reads(self._function, signature) else _read_only_copy


def _read_only_copy(array: np.ndarray) -> np.ndarray:
    return read_only(array.copy())


def _kind(value: Any) -> Any:
    """What decides how Numba compiles a function for a value."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    from numba import typeof

    return typeof(value)


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function on arrays such that it cannot change them, given read-only ones."""
    if hasattr(function, "py_func") and hasattr(function, "signatures"):
        return Guarded(function)
    return _on_copies(function) if _calls_kernels(function, set()) else function


def _on_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*values: Any, **settings: Any) -> Any:
        given = {name: _read_only_copy(v) if isinstance(v, np.ndarray) else v for name, v in settings.items()}
        return function(*[_read_only_copy(v) if isinstance(v, np.ndarray) else v for v in values], **given)

    return call


def _calls_kernels(function: Any, seen: set[int]) -> bool:
    """Whether a function is, or names, one of `guvectorize`: NumPy hands it arrays as addresses, read-only ones too."""
    if isinstance(function, np.ufunc) or hasattr(function, "gufunc_builder"):
        return getattr(function, "signature", None) is not None
    if not isinstance(function, FunctionType) or id(function) in seen:
        return False
    seen.add(id(function))
    return any(_calls_kernels(value, seen) for value in _around(function))


def _around(function: FunctionType) -> Iterator[Any]:
    """What a function finds around it: the globals that it, or a function inside it, names, and its closure."""
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        yield from (function.__globals__[name] for name in code.co_names if name in function.__globals__)
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # nothing has been put into it
            yield cell.cell_contents


@lru_cache(maxsize=128)
def for_any_types(function: Any) -> Any:
    """A function of Numba's as one that is compiled for what it is given, even if it was declared for certain types.

    It says how it divides by zero, as what is compiled inside of another function does as that one, unless it says so.
    """
    if function._can_compile and "error_model" in function.targetoptions:
        return function
    from numba import jit

    return jit(**{"error_model": "python", **function.targetoptions})(function.py_func)


# Looking whether it is so


class _Looking:
    """The switch: one object, so that a call reads a single attribute."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


looking = _Looking()


@contextmanager
def inputs_watched() -> Iterator[None]:
    """Inside the block, the arrays that a user's function is given are compared with what they were before."""
    outside, looking.on = looking.on, True
    try:
        yield
    finally:
        looking.on = outside


def call_watched(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function, and refuse what it returns if an array among its arguments is another afterwards."""
    before = [a.copy() if isinstance(a, np.ndarray) else None for a in args]
    result = function(*args, **kwargs)
    for place, (array, copy) in enumerate(zip(args, before, strict=True)):
        if copy is not None and array.tobytes() != copy.tobytes():
            raise OperatorError(
                f"it wrote into its argument {place + 1}, which others still read; compute a new array instead, or "
                "write into a copy"
            )
    return result
