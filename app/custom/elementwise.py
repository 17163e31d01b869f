"""A function of single numbers applied to arrays: compiled by Numba if possible, else called for each element."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from threading import Lock
from types import FunctionType
from typing import Any

import numpy as np

from app.custom.calling import ReturnedError
from app.custom.numba_functions import by_name, dispatcher_of, function_name, interpreted, python_function

Kernel = Callable[..., Any]
"""Takes the arrays, then the settings that vary; gives an array for each result."""

KEPT = 128
"""How many kernels are kept for operators that may be made again, the most recently used ones."""

_kept: OrderedDict[Any, Kernel] = OrderedDict()
_keeping = Lock()


def over_arrays(function: Any, names: Sequence[str], results: int) -> Callable[..., Any]:
    """`function` on arrays of one type, with broadcasting.

    `names` are the parameters that get the arrays, `results` is how many numbers the function returns. Settings that
    are numbers are arguments of the compiled function; others are compiled into it.
    """
    made: OrderedDict[Any, Kernel] = OrderedDict()
    frozen: Any = None

    @wraps(function)
    def call(*arrays: np.ndarray, **settings: Any) -> Any:
        nonlocal frozen
        dtype = arrays[0].dtype
        if interpreted.on:
            interpreted.calls += 1
            return _looped(function, names, results, dtype, settings)(*arrays)
        varying = {name: _NUMBERS[type(value)](value) for name, value in settings.items() if _varies(value)}
        fixed = {name: value for name, value in settings.items() if name not in varying}
        key = (dtype, *((name, value.dtype.char) for name, value in varying.items()), *fixed.items())
        if frozen is None or frozen.have_changed():
            from app.engine.compiled.frozen import Frozen  # imported late: it needs Numba

            frozen = Frozen(function)
            made.clear()
        kernel = made.get(key)
        if kernel is None:
            kernel = made[key] = _kernel(function, names, results, dtype, varying, fixed)
            if len(made) > KEPT:
                made.popitem(last=False)
        return kernel(*arrays, *varying.values())

    return call


_NUMBERS: Mapping[type, Any] = {bool: np.bool_, int: np.int64, float: np.float64}
"""The types of settings that are arguments of a kernel, and what they are converted to."""


def _varies(value: Any) -> bool:
    return type(value) in _NUMBERS and not (type(value) is int and value.bit_length() > 63)


def _kernel(
    function: Any,
    names: Sequence[str],
    results: int,
    dtype: np.dtype,
    varying: Mapping[str, np.generic],
    fixed: Mapping[str, Any],
) -> Kernel:
    """The kernel of a function: the kept one of the same source, constants and types, or a new one."""
    from app.engine.compiled.fingerprint import fingerprint  # imported late: it needs Numba

    types = [(name, value.dtype.char) for name, value in varying.items()]
    key = fingerprint(function, repr((tuple(names), results, dtype.str, types)), tuple(fixed.items()))
    with _keeping:
        if key not in _kept:
            made = _compiled(function, names, results, dtype, varying, fixed)
            if made is None:
                return _with_settings(function, names, results, dtype, tuple(varying), fixed)
            _kept[key] = made
            if len(_kept) > KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(key)
        return _kept[key]


def _with_settings(
    function: Any, names: Sequence[str], results: int, dtype: np.dtype, varying: Sequence[str], fixed: Mapping[str, Any]
) -> Kernel:
    """A kernel that calls the function for each element."""

    def kernel(*values: Any) -> Any:
        given = {name: value.item() for name, value in zip(varying, values[len(names) :], strict=True)}
        return _looped(function, names, results, dtype, {**given, **fixed})(*values[: len(names)])

    return kernel


def _looped(
    function: Any, names: Sequence[str], results: int, dtype: np.dtype, settings: Mapping[str, Any]
) -> Callable[..., Any]:
    source = by_name(python_function(function), names)

    def one(numbers: Sequence[Any]) -> tuple[Any, ...]:
        result = source(*numbers, **settings)
        found = result if isinstance(result, tuple) else (result,)
        if len(found) != results or any(np.ndim(n) or np.asarray(n).dtype.kind not in "biuf" for n in found):
            expected = "a number" if results == 1 else f"{results} numbers"
            problem = f"returned {result!r} for {', '.join(map(str, numbers))}, expected {expected}"
            if isinstance(result, tuple):
                problem += '; name its outputs, as in custom_op(outputs=["low", "high"])'
            raise ReturnedError(problem)
        return found

    def loop(*arrays: np.ndarray) -> Any:
        together = np.broadcast(*arrays)
        outputs = tuple(np.empty(together.shape, dtype) for _ in range(results))
        for place, numbers in enumerate(together):
            for output, number in zip(outputs, one(numbers), strict=True):
                output.flat[place] = number
        return outputs

    return loop


def _compiled(
    function: Any,
    names: Sequence[str],
    results: int,
    dtype: np.dtype,
    varying: Mapping[str, np.generic],
    fixed: Mapping[str, Any],
) -> Kernel | None:
    """A ufunc for each result, with NumPy's division by zero; None, with a warning, if Numba cannot compile it."""
    import numba  # imported late: it takes half a second

    from app.engine.compiled.read_only import why_refused

    try:
        ufuncs = [numba.vectorize(one) for one in _one_result_each(function, [*names, *varying], results, fixed)]
        types = [numba.from_dtype(dtype)] * len(names) + [numba.from_dtype(value.dtype) for value in varying.values()]
        for ufunc in ufuncs:
            ufunc.add(tuple(types))
    except Exception as error:  # Numba refuses in many ways
        code = python_function(function).__code__
        warnings.warn_explicit(
            f"{function_name(function)} is called for each element by itself, which is slow: for {dtype}, Numba cannot "
            f"compile it: {why_refused(error, function)}",
            RuntimeWarning,
            code.co_filename,
            code.co_firstlineno,
        )
        return None
    return lambda *arrays: tuple(ufunc(*arrays) for ufunc in ufuncs)


def _one_result_each(
    function: Any, taken: Sequence[str], results: int, fixed: Mapping[str, Any]
) -> list[Callable[..., Any]]:
    """For each result a function of the parameters `taken`, in order; the function itself if it is that."""
    if isinstance(function, FunctionType) and results == 1:
        code = function.__code__
        if code.co_kwonlyargcount == 0 and code.co_varnames[: code.co_argcount] == tuple(taken):
            return [function]  # compiling one function inside another takes twice the time and memory
    given = [f"{name}={name}" for name in taken] + [f"{name}=setting_{name}" for name in fixed]
    call = f"inner({', '.join(given)})"
    known = {"inner": dispatcher_of(function), **{f"setting_{name}": value for name, value in fixed.items()}}
    picks = [call] if results == 1 else [f"{call}[{i}]" for i in range(results)]
    return [eval(f"lambda {', '.join(taken)}: {pick}", known) for pick in picks]
