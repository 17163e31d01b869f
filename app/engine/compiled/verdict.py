"""Whether Numba compiles a function for the values that an operator will give it, and if not, why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, typeof, types
from numba.core.errors import NumbaError
from numba.np.numpy_support import from_dtype

from app.engine.compiled.lowering import Lowered
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
    if isinstance(form, Elementwise):
        given = [from_dtype(_dtype(lowered, n)) for n in names]
        return _reason(form.function, given, list(op.attributes.values()))
    if any(not lowered.shapes[n] for n in (*names, *op.outputs)):
        return "it works on values without axes"
    arrays = [types.Array(from_dtype(_dtype(lowered, n)), len(lowered.shapes[n]), "C") for n in names]
    reason, returned = _compiled(form.function, arrays, list(op.attributes.values()))
    return reason or _wrong_results(op, lowered, returned)


def _dtype(lowered: Lowered, name: str) -> Any:
    return np.dtype(lowered.dtype(name))


def _reason(function: Callable[..., Any], given: list[Any], settings: list[Any]) -> str:
    return _compiled(function, given, settings)[0]


def _compiled(function: Any, given: list[Any], settings: list[Any]) -> tuple[str, Any]:
    """Why a function does not compile, or '' and the type that it returns."""
    dispatcher = function if hasattr(function, "py_func") else njit(function)
    signature = (*given, *map(typeof, settings))
    try:
        dispatcher.compile(signature)
        return "", dispatcher.overloads[signature].signature.return_type
    except (NumbaError, NotImplementedError, KeyError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        wanted = [line for line in lines if not line.startswith(("Failed in", "Traceback", "During"))]
        return f"Numba cannot compile {dispatcher.py_func.__name__}: {wanted[0] if wanted else error}", None


def _wrong_results(op: Operator, lowered: Lowered, returned: Any) -> str:
    """Why what a compiled function returns cannot be used as the outputs as they are."""
    parts: list[Any] = list(returned.types) if isinstance(returned, types.BaseTuple) else [returned]
    if len(parts) != len(op.outputs):
        return f"its function returns {len(parts)} values for {len(op.outputs)} outputs"
    for part, name in zip(parts, op.outputs, strict=True):
        if not isinstance(part, types.Array) or part.ndim != len(lowered.shapes[name]):
            return f"its function returns {part}, not an array with {len(lowered.shapes[name])} axes"
        if op.definition.form.exact and str(part.dtype) != lowered.dtype(name):
            return f"its function returns {part.dtype}, but {lowered.dtype(name)} was declared"
    return ""
