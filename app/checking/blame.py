"""Which line of a user's file keeps an operator from being inlined."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from app.custom.numba_functions import is_compiled, python_function
from app.custom.on_numbers import stops_on_numbers
from app.custom.operator import CustomOperator
from app.engine.compiled.lowering import Lowered
from app.engine.compiled.read_only import array_type
from app.graph.program import Operator
from app.ops.form import Elementwise, Returning
from app.reading import parameters_of


def why_not_inlined(op: Operator, lowered: Lowered) -> str:
    """What stands in the way, with file and line, to be put behind the engine's verdict; '' where no line does."""
    if not isinstance(op.definition, CustomOperator):
        return ""
    function = op.definition.function
    source = python_function(function)
    if not isinstance(source, FunctionType):
        return ""
    form = op.definition.form
    here = f"{_file(source)}:{source.__code__.co_firstlineno}"
    if op.definition.works_on == "Tensors":
        return f", {here}: {source.__name__} works on Tensors; as functions of Numba's, under custom_op, it compiles"
    if isinstance(form, Returning):
        stop = stops_on_numbers(function)
        if stop is not None:
            return (
                f"; not inlined for {_file(source)}:{stop[0]}: `{stop[1]}`, as more than one element may matter there"
            )
    if isinstance(form, Elementwise):
        numbers = [_number(lowered.dtype(name)) for name in _taken(op, form)]
        stopped = _numba_stops(form.function, numbers, op)
        return f"; {stopped}" if stopped else ""
    if form is None and not is_compiled(function):
        stopped = _numba_stops(source, _arrays_for(source, op, lowered), op)
        hint = stopped or "it would compile as it is: put @njit above it"
        return f", {here}; {hint}"
    return ""


def _taken(op: Operator, form: Elementwise) -> list[str]:
    places = range(len(op.inputs)) if form.takes is None else form.takes
    return [str(op.inputs[place]) for place in places]


def _arrays_for(function: FunctionType, op: Operator, lowered: Lowered) -> list[Any]:
    """Numba's types of the arrays that a function on arrays is given: by name where it asks so, else in order."""
    names = dict(zip(op.definition.inputs, op.inputs, strict=False))
    wanted = [p for p in parameters_of(function) if p not in op.attributes]
    given = [str(names[p]) for p in wanted] if all(p in names for p in wanted) else []
    given = given or [str(n) for n in op.inputs[len(op.inputs) - len(wanted) :]]
    return [array_type(_number(lowered.dtype(n)), len(lowered.shapes[n])) for n in given]


def _file(function: FunctionType) -> str:
    return function.__code__.co_filename.rpartition("/")[2]


def _number(dtype: str) -> Any:
    from numba.np.numpy_support import from_dtype

    return from_dtype(np.dtype(dtype))


def _numba_stops(function: Any, given: Sequence[Any], op: Operator) -> str:
    """Where Numba gives up on a function of numbers, in its own words."""
    from numba import njit, typeof
    from numba.core.errors import NumbaError

    dispatcher = function if is_compiled(function) else njit(function)
    try:
        dispatcher.compile((*given, *map(typeof, op.attributes.values())))
    except (NumbaError, NotImplementedError) as error:
        places = re.findall(r'File "([^"]+)", line (\d+)', str(error))
        line = f"{places[-1][0].rpartition('/')[2]}:{places[-1][1]}" if places else _file(python_function(function))
        return f"Numba stops at {line}{_line_of(places)}"
    return ""


def _line_of(places: list[tuple[str, str]]) -> str:
    if not places:
        return ""
    text = linecache.getline(places[-1][0], int(places[-1][1])).strip()
    return f": `{text}`" if text else ""
