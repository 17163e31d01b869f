"""A function of single numbers made one of arrays: compiled by Numba where that can, else one call an element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from app.custom.functions import by_name, dispatcher_of, python_function
from app.custom.interpreted import interpreted
from app.errors import OperatorError


def over_arrays(function: Any, names: Sequence[str], results: int) -> Callable[..., Any]:
    """`function` on arrays of one type, with broadcasting.

    `names` are the parameters that the arrays are given for, `results` is how many numbers it returns.
    """
    made: dict[Any, Callable[..., Any]] = {}

    @wraps(function)
    def call(*arrays: np.ndarray, **settings: Any) -> Any:
        dtype = arrays[0].dtype
        if interpreted.on:
            interpreted.calls += 1
            return _looped(function, names, results, dtype, settings)(*arrays)
        key = (dtype, *sorted(settings.items()))
        if key not in made:
            made[key] = _compiled(function, names, results, dtype, settings) or _looped(
                function, names, results, dtype, settings
            )
        return made[key](*arrays)

    return call


def _looped(
    function: Any, names: Sequence[str], results: int, dtype: np.dtype, settings: Mapping[str, Any]
) -> Callable[..., Any]:
    source = by_name(python_function(function), names)

    def one(numbers: Sequence[Any]) -> tuple[Any, ...]:
        result = source(*numbers, **settings)
        found = result if isinstance(result, tuple) else (result,)
        if len(found) != results or any(np.ndim(n) or np.asarray(n).dtype.kind not in "biuf" for n in found):
            expected = "a number" if results == 1 else f"{results} numbers"
            raise OperatorError(f"returned {result!r} for {', '.join(map(str, numbers))}, expected {expected}")
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
    function: Any, names: Sequence[str], results: int, dtype: np.dtype, settings: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """A ufunc for each result, dividing by zero as NumPy does; None where Numba cannot compile the function."""
    import numba  # imported late: half a second that a run without such an operator need not wait

    given = [f"{name}={name}" for name in names] + [f"{name}=setting_{name}" for name in settings]
    call = f"inner({', '.join(given)})"
    picks = [call] if results == 1 else [f"{call}[{i}]" for i in range(results)]
    try:
        known = {"inner": dispatcher_of(function), **{f"setting_{name}": value for name, value in settings.items()}}
        ufuncs = [numba.vectorize(eval(f"lambda {', '.join(names)}: {pick}", known)) for pick in picks]
        for ufunc in ufuncs:
            ufunc.add((numba.from_dtype(dtype),) * len(names))
    except Exception:  # Numba refuses in many ways
        return None
    return lambda *arrays: tuple(ufunc(*arrays) for ufunc in ufuncs)
