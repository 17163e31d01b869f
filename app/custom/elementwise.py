"""A function of single numbers applied to arrays: compiled by Numba if possible, else called for each element."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any

import numpy as np

from app.custom.calling import ReturnedError, described
from app.custom.for_numba import for_numba
from app.custom.numba_functions import Current, interpreted
from app.errors import AppError, OperatorError
from app.functions import function_name, python_function
from app.ops.settings import key_of_settings

Kernel = Callable[..., Any]
"""Takes the arrays, then the settings that vary; gives an array for each result."""

KEPT = 128
"""How many kernels of an operator are kept, one for each combination of types and of settings that are no numbers."""


def over_arrays(function: Any, results: int) -> Callable[..., Any]:
    """`function`, which returns `results` numbers, on arrays of one type, with broadcasting.

    Settings follow in the order of its parameters. Those that are numbers are arguments of the compiled function;
    others are compiled into it.
    """
    current: Current[OrderedDict[Any, Kernel]] = Current(function, OrderedDict)

    @wraps(function)
    def call(*arrays: np.ndarray, **settings: Any) -> Any:
        dtype = arrays[0].dtype
        if interpreted.on:
            interpreted.calls += 1
            return looped(function, results, dtype, settings)(*arrays)
        varying = {name: value for name, value in settings.items() if _varies(value)}
        fixed = {name: value for name, value in settings.items() if name not in varying}
        key = (dtype, *((name, type(value)) for name, value in varying.items()), key_of_settings(fixed))
        kernels = current.get()
        kernel = kernels.get(key)
        if kernel is None:
            kernel = kernels[key] = _kernel(function, len(arrays), results, dtype, settings, [*varying])
            if len(kernels) > KEPT:
                kernels.popitem(last=False)
        return kernel(*arrays, *varying.values())

    return call


_NUMBERS = {bool: np.dtype("bool"), int: np.dtype("int64"), float: np.dtype("float64")}
"""The types of settings that are arguments of a kernel."""


def _varies(value: Any) -> bool:
    return type(value) in _NUMBERS and not (type(value) is int and value.bit_length() > 63)


def _kernel(
    function: Any,
    arrays: int,
    results: int,
    dtype: np.dtype,
    settings: Mapping[str, Any],
    varying: Sequence[str],
) -> Kernel:
    """The function as a compiled loop, or called for each element, with a warning, if Numba cannot compile it."""

    def one_by_one(*values: Any) -> Any:
        numbers = dict(zip(varying, values[arrays:], strict=True))
        return looped(function, results, dtype, {**settings, **numbers})(*values[:arrays])

    source = python_function(function)
    code = getattr(source, "__code__", None)
    try:
        if not isinstance(source, FunctionType):
            raise OperatorError(f"Numba compiles functions only, and it is a {type(source).__name__}")
        from app.engine.compiled.array_loop import ArrayLoop  # imported late: it needs Numba

        types = {name: _NUMBERS[type(settings[name])] for name in varying}
        loop = ArrayLoop(for_numba(source), [dtype] * arrays, settings, types, results)
    except Exception as error:  # Numba refuses in many ways
        reason = str(error) if isinstance(error, AppError) else described(error)
        warnings.warn_explicit(
            f"{function_name(function)} is called for each element by itself, which is slow: for {dtype}, {reason}",
            RuntimeWarning,
            code.co_filename if code else function_name(function),
            code.co_firstlineno if code else 1,
        )
        return one_by_one

    def kernel(*values: Any) -> Any:
        try:
            return loop(*values)
        except Exception as error:
            raised = error
        one_by_one(*values)  # raises the error with the number that it is raised for
        raise raised

    return kernel


def looped(function: Any, results: int, dtype: np.dtype, settings: Mapping[str, Any]) -> Callable[..., Any]:
    """The function as Python, called for each element."""
    source = python_function(function)

    def one(numbers: Sequence[Any]) -> tuple[Any, ...]:
        result = source(*numbers, **settings)
        numbers_returned = result if isinstance(result, tuple) else (result,)
        if len(numbers_returned) != results or any(
            not isinstance(n, (float, np.floating)) and (np.ndim(n) or np.asarray(n).dtype.kind not in "biuf")
            for n in numbers_returned
        ):
            expected = "a number" if results == 1 else f"{results} numbers"
            problem = f"returned {result!r} for {', '.join(map(str, numbers))}, expected {expected}"
            if isinstance(result, tuple):
                problem += '; name its outputs, as in custom_op(outputs=["low", "high"])'
            raise ReturnedError(problem)
        return numbers_returned

    def loop(*arrays: np.ndarray) -> Any:
        together = np.broadcast(*arrays)
        outputs = tuple(np.empty(together.shape, dtype) for _ in range(results))
        flat = [output.reshape(-1) for output in outputs]
        for place, numbers in enumerate(together):
            for output, number in zip(flat, one(numbers), strict=True):
                output[place] = number
        return outputs

    return loop
