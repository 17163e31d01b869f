"""Whether Numba compiles a function for the values that an operator will give it, and if not, why."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, typeof, types
from numba.core.errors import NumbaError
from numba.np.numpy_support import from_dtype

from app.engine.compiled import cache
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.lowered import Lowered
from app.graph.program import Operator
from app.ops.form import Elementwise, Fused, Returning


def why_not(op: Operator, lowered: Lowered) -> str:
    """'' if everything that a user wrote for an operator compiles; else the reason in a line."""
    form = op.definition.form
    if isinstance(form, Fused):
        return "; ".join(filter(None, (why_not(member, lowered) for member in form.body)))
    if not op.definition.where or not isinstance(form, (Elementwise, Returning)):
        return ""
    places = range(len(op.inputs)) if form.takes is None else form.takes
    names = [str(op.inputs[i]) for i in places]
    numbers = [from_dtype(np.dtype(lowered.dtype(n))) for n in names]
    settings = list(op.attributes.values())
    if isinstance(form, Elementwise):
        return _trial(form.function, numbers, settings)[0]
    if form.writes:
        return f"{form.function.__name__} writes into what it is given"
    if any(not lowered.shapes[n] for n in (*names, *op.outputs)):
        return "it works on values without axes"
    arrays = [types.Array(t, len(lowered.shapes[n]), "C") for t, n in zip(numbers, names, strict=True)]
    reason, returned = _trial(form.function, arrays, settings)
    return reason or _wrong_results(op, lowered, returned)


def _trial(function: Any, given: list[Any], settings: list[Any]) -> tuple[str, list[list[Any]]]:
    """Why a function does not compile, or '', and the type and number of axes of what it returns.

    What a trial showed is kept on disk: it takes time, and the function is compiled again inside its Program.
    """
    reason, returned = cache.remembered(
        fingerprint(function, repr(given), repr([*map(typeof, settings)])), lambda: _compile(function, given, settings)
    )
    return reason, returned


def _compile(function: Any, given: list[Any], settings: list[Any]) -> tuple[str, list[list[Any]]]:
    dispatcher = function if hasattr(function, "py_func") else njit(function)
    signature = (*given, *map(typeof, settings))
    try:
        dispatcher.compile(signature)
        returned = dispatcher.overloads[signature].signature.return_type
    except (NumbaError, NotImplementedError, KeyError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        telling = [line for line in lines if not line.startswith(("Failed in", "Traceback", "During"))]
        return f"Numba cannot compile {dispatcher.py_func.__name__}: {telling[0] if telling else error}", []
    parts: list[Any] = list(returned) if isinstance(returned, types.BaseTuple) else [returned]  # type: ignore[call-overload]
    return "", [[str(getattr(part, "dtype", part)), getattr(part, "ndim", -1)] for part in parts]


def _wrong_results(op: Operator, lowered: Lowered, returned: list[list[Any]]) -> str:
    """Why what a compiled function returns cannot be used as the outputs as they are."""
    if len(returned) != len(op.outputs):
        return f"its function returns {len(returned)} values for {len(op.outputs)} outputs"
    for (dtype, axes), name in zip(returned, op.outputs, strict=True):
        if axes != len(lowered.shapes[name]):
            return f"its function returns {dtype} with {axes} axes, not an array with {len(lowered.shapes[name])}"
        if op.definition.form.exact and dtype != lowered.dtype(name):
            return f"its function returns {dtype}, but {lowered.dtype(name)} was declared"
    return ""
