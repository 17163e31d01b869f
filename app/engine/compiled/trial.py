"""Whether Numba compiles a function for the values that an operator will give it, and if not, why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types

from app.engine.compiled import cache
from app.engine.compiled.fingerprint import fingerprint
from app.engine.compiled.linkable import OfThisProcessError, linkable
from app.engine.compiled.numba_api import from_dtype
from app.engine.compiled.read_only import array_type, is_refusal, where_it_writes, why_refused
from app.engine.compiled.steps import Lowered, values_taken
from app.functions import python_function
from app.graph.program import Operator
from app.ops.dtype import castable
from app.ops.lowering import Elementwise, Fused, Returning


def why_not(op: Operator, lowered: Lowered) -> str:
    """Return '' if the custom functions of an operator compile, or the reason in a line."""
    lowering = op.definition.lowering
    if isinstance(lowering, Fused):
        return "; ".join(filter(None, (why_not(member, lowered) for member in lowering.body)))
    if not op.definition.custom or not isinstance(lowering, (Elementwise, Returning)):
        return ""
    declared = [lowered.dtype(name) for name in op.outputs]
    if isinstance(lowering, Elementwise):
        types = [np.dtype(lowered.dtype(name)) for name in values_taken(op)]
        return why_not_numbers(lowering.function, types, [*op.attributes.values()], declared)
    if any(not lowered.shapes[n] for n in (*values_taken(op), *op.outputs)):
        return "it works on values without axes"
    tried = _on_arrays(op, lowered)
    return tried.reason or _not_arrays(tried.returned, declared, [len(lowered.shapes[name]) for name in op.outputs])


def why_not_numbers(function: Any, dtypes: Sequence[np.dtype], settings: Sequence[Any], declared: Sequence[str]) -> str:
    """Return why a function of numbers of these types, and of settings, cannot give numbers of the declared types, or
    ''."""
    tried = _tried(function, [from_dtype(dtype) for dtype in dtypes], settings)
    return tried.reason or _not_numbers(tried.returned, declared)


def only_reads_arrays(op: Operator, lowered: Lowered) -> bool:
    """Return whether the function of an operator provably does not change its arrays."""
    return _on_arrays(op, lowered).only_reads


class _Trial(NamedTuple):
    """The result of a trial compilation."""

    reason: str
    """Why it does not compile, or ''."""
    returned: Sequence[list[Any]] = ()
    """The type and number of axes of what it returns."""
    only_reads: bool = False


def _number(lowered: Lowered, name: str) -> Any:
    return from_dtype(np.dtype(lowered.dtype(name)))


def _on_arrays(op: Operator, lowered: Lowered) -> _Trial:
    arrays = [array_type(_number(lowered, n), len(lowered.shapes[n])) for n in values_taken(op)]
    return _tried(op.definition.lowering.function, arrays, [*op.attributes.values()])


def _tried(function: Any, arguments: Sequence[Any], settings: Sequence[Any]) -> _Trial:
    """The result of compiling a function for these types and those of its settings; kept on disk."""
    try:
        signature = (*arguments, *map(typeof, settings))
    except ValueError as error:
        return _Trial(str(error))
    code = getattr(function, "py_func", function).__code__
    key = fingerprint(function, f"{code.co_filename}:{code.co_firstlineno}", repr(signature))  # the reason names these
    return _Trial(*cache.remembered(key, lambda: _compile(function, signature)))


def _compile(function: Any, signature: tuple[Any, ...]) -> _Trial:
    name, code = (getattr(python_function(function), key) for key in ("__name__", "__code__"))
    if code.co_argcount > len(signature):
        more = code.co_varnames[len(signature)]
        return _Trial(f"{name} has a parameter {more} with a default; in a custom_op, it is a setting")
    try:
        linked = linkable(function, signature)
    except OfThisProcessError as error:
        return _Trial(str(error))
    except Exception as error:  # Numba refuses in many ways
        if where_it_writes(error) is not None:
            return _Trial(f"{name} writes into what it is given")
        refused = _Trial(f"Numba cannot compile {name}: {why_refused(error, function)}")
        if not is_refusal(error):
            raise cache.Passing(refused) from error
        return refused
    parts = getattr(linked.returns, "types", [linked.returns])
    return _Trial("", [*map(_type_and_axes, parts)], linked.only_reads)


def _type_and_axes(returned: Any) -> list[Any]:
    """The name of the element type and the number of axes of a Numba type; -1 for a number or anything else."""
    if isinstance(returned, types.Array):
        return [str(returned.dtype), returned.ndim]
    if isinstance(returned, types.Optional):  # where it is None, storing it raises an error
        returned = returned.type
    return [str(types.unliteral(returned)), -1]


_NUMBERS = ("bool", "int", "uint", "float")
"""What the names of Numba's types of real numbers begin with."""


def _not_numbers(returned: Sequence[list[Any]], declared: Sequence[str]) -> str:
    """Return why the results of a function of numbers cannot be elements of the outputs, or ''."""
    for dtype, axes in returned:
        if axes >= 0:
            return f"its function returns an array of {dtype}; if np.where makes it, write `a if test else b`"
        if not dtype.startswith(_NUMBERS):
            return f"its function returns {dtype}, not a number"
    return _wrong_types(returned, declared)


def _not_arrays(returned: Sequence[list[Any]], declared: Sequence[str], axes: Sequence[int]) -> str:
    """Return why the results of a compiled function cannot be the outputs, or ''."""
    for (dtype, actual), expected in zip(returned, axes, strict=False):
        if actual != expected:
            return f"its function returns {dtype} with {actual} axes, not an array with {expected}"
    return _wrong_types(returned, declared)


def _wrong_types(returned: Sequence[list[Any]], declared: Sequence[str]) -> str:
    if len(returned) != len(declared):
        return f"its function returns {len(returned)} values for {len(declared)} outputs"
    for (dtype, _), expected in zip(returned, declared, strict=True):
        if not castable(dtype, expected):
            return f"its function returns {dtype}, but {expected} was declared"
    return ""
