"""A function of single numbers made one of arrays: compiled by Numba where that can, else one call an element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from app.custom.functions import python_function


def over_arrays(function: Any, results: int) -> Callable[..., Any]:
    """`function` on arrays, with broadcasting; `results` is how many numbers it returns."""
    made: dict[Any, Callable[..., Any]] = {}

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
    return np.vectorize(lambda *numbers: source(*numbers, **settings), otypes=[arrays[0].dtype] * results)


def _compiled(
    function: Any, results: int, arrays: Sequence[np.ndarray], settings: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """A ufunc for each result; None where Numba cannot compile the function."""
    from numba import njit, vectorize  # imported late: half a second that a run without such an operator need not wait
    from numba.core.errors import NumbaError

    inner = function if hasattr(function, "py_func") else njit(function)
    names = ", ".join(f"a{i}" for i in range(len(arrays)))
    call = f"inner({names}{''.join(f', {k}={v!r}' for k, v in settings.items())})"
    picks = [call] if results == 1 else [f"{call}[{i}]" for i in range(results)]
    ufuncs = [vectorize(eval(f"lambda {names}: {pick}", {"inner": inner})) for pick in picks]
    try:
        for ufunc in ufuncs:
            ufunc(*[a.dtype.type(1) for a in arrays])
    except (NumbaError, NotImplementedError, TypeError):
        return None
    return ufuncs[0] if results == 1 else lambda *given: tuple(ufunc(*given) for ufunc in ufuncs)
