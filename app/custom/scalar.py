"""A function of single numbers made one of arrays: compiled by Numba where that can, else one call an element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from app.custom.functions import is_compiled, python_function
from app.errors import OperatorError


def over_arrays(function: Any, results: int) -> Callable[..., Any]:
    """`function` on arrays of one type, with broadcasting; `results` is how many numbers it returns."""
    made: dict[Any, Callable[..., Any]] = {}

    @wraps(function)
    def call(*arrays: np.ndarray, **settings: Any) -> Any:
        key = (arrays[0].dtype, *sorted(settings.items()))
        if key not in made:
            made[key] = _compiled(function, results, arrays, settings) or _looped(function, results, arrays, settings)
        return made[key](*arrays)

    return call


def _looped(
    function: Any, results: int, arrays: Sequence[np.ndarray], settings: Mapping[str, Any]
) -> Callable[..., Any]:
    source = python_function(function)

    def one(*numbers: Any) -> Any:
        result = source(*numbers, **settings)
        found = result if isinstance(result, tuple) else (result,)
        if len(found) != results or any(np.ndim(n) or np.asarray(n).dtype.kind not in "biuf" for n in found):
            expected = "a number" if results == 1 else f"{results} numbers"
            raise OperatorError(f"returned {result!r} for {', '.join(map(str, numbers))}, expected {expected}")
        return result

    return np.vectorize(one, otypes=[arrays[0].dtype] * results)


def _compiled(
    function: Any, results: int, arrays: Sequence[np.ndarray], settings: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """A ufunc for each result, dividing by zero as NumPy does; None where Numba cannot compile the function."""
    import numba  # imported late: half a second that a run without such an operator need not wait

    names = ", ".join(f"a{i}" for i in range(len(arrays)))
    call = f"inner({names}{''.join(f', {name}=setting_{name}' for name in settings)})"
    picks = [call] if results == 1 else [f"{call}[{i}]" for i in range(results)]
    try:
        inner = function if is_compiled(function) else numba.njit(function, error_model="numpy")
        known = {"inner": inner, **{f"setting_{name}": value for name, value in settings.items()}}
        ufuncs = [numba.vectorize(eval(f"lambda {names}: {pick}", known)) for pick in picks]
        for ufunc in ufuncs:
            ufunc.add(tuple(numba.from_dtype(a.dtype) for a in arrays))
    except Exception:  # Numba refuses in many ways
        return None
    return ufuncs[0] if results == 1 else lambda *given: tuple(ufunc(*given) for ufunc in ufuncs)
