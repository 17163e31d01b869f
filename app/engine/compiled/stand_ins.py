"""Replaces exp, log, tanh and their like in functions of single numbers by functions that LLVM vectorises.

Numba calls the C library for them, one number at a time. The engine therefore compiles a copy of a function in which
`np.exp` and `math.exp` are those of `vector_math`, also in Numba functions that it calls. The user's function itself is
unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import jit, types

from app.engine.compiled.linkable import AS_NUMPY, linkable
from app.engine.compiled.numba_api import AbstractTemplate, infer_global, lower_builtin, signature

_REPLACED = frozenset({"exp", "expm1", "tanh", "log", "log1p", "erf"})
"""Functions of `numpy` and `math`; in `vector_math` their names end with the precision that they are for."""


def on_vectors(function: Any) -> Any:
    """Return a copy of a function of single numbers that calls stand-ins; the function itself if it needs none."""
    return _copy(function, set())


def _copy(function: Any, seen: set[int]) -> Any:
    source = getattr(function, "py_func", function)
    for_fixed_types = not getattr(function, "_can_compile", True)
    if not isinstance(source, FunctionType) or for_fixed_types or id(source) in seen:
        return function
    seen.add(id(source))
    names = set(_names(source.__code__))
    around = {name: source.__globals__[name] for name in names if name in source.__globals__}
    replaced = {name: _replaced(value, names, seen) for name, value in around.items()}
    cells = tuple(_cell(cell, names, seen) for cell in source.__closure__ or ())
    if all(replaced[name] is around[name] for name in around) and cells == (source.__closure__ or ()):
        return function
    names_around = {**source.__globals__, **replaced}
    made = FunctionType(source.__code__, names_around, source.__name__, source.__defaults__, cells)
    made.__kwdefaults__ = source.__kwdefaults__
    return jit(**{**getattr(function, "targetoptions", AS_NUMPY), "forceinline": True})(made)


def _names(code: CodeType) -> Iterator[str]:
    """Return the global names and attributes that code uses."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _cell(cell: CellType, names: set[str], seen: set[int]) -> CellType:
    try:
        value = cell.cell_contents
    except ValueError:  # nothing has been put into it
        return cell
    made = _replaced(value, names, seen)
    return cell if made is value else CellType(made)


def _replaced(value: Any, names: set[str], seen: set[int]) -> Any:
    """Return what a global value becomes in a copy that uses these names."""
    if value is np or value is math:
        return value if names.isdisjoint(_REPLACED) else _with_stand_ins(value, names)
    if isinstance(value, (np.ufunc, BuiltinFunctionType)) and value.__name__ in _REPLACED:
        ours = any(value is getattr(module, value.__name__, None) for module in (np, math))
        return _stand_in(value) if ours else value
    return _copy(value, seen) if hasattr(value, "py_func") else value


def _with_stand_ins(module: ModuleType, names: set[str]) -> ModuleType:
    made = _like(module)
    found = [name for name in names & _REPLACED if hasattr(module, name)]
    vars(made).update({name: _stand_in(getattr(module, name)) for name in found})
    return made


@lru_cache
def _like(module: ModuleType) -> ModuleType:
    """A module with the public names of another. Numba tells modules apart by how they print: this has no file."""
    made = ModuleType(module.__name__)
    vars(made).update({name: value for name, value in vars(module).items() if not name.startswith("_")})
    return made


@lru_cache
def _stand_in(function: Any) -> Any:
    """Return a function that Numba compiles as the quick one for floats, and as the given one for other numbers."""
    from app.engine.compiled import vector_math  # imported late: most networks do without

    names = {number: f"{function.__name__}_{number.bitwidth}" for number in (types.float32, types.float64)}
    quick = {(number,): getattr(vector_math, name) for number, name in names.items() if hasattr(vector_math, name)}
    both = tuple(quick.values())

    def stand_in(x: Any, both: Any = both) -> Any:  # they are part of what it is known by
        return function(x)

    class Typing(AbstractTemplate):
        """The type of the result: the same float for floats, otherwise that of the given function."""

        key = stand_in

        def generic(self, given: Any, named: Any) -> Any:
            if given in quick:
                return signature(given[0], *given)
            return self.context.resolve_function_type(self.context.resolve_value_type(function), given, named)

    infer_global(stand_in, types.Function(Typing))

    @lower_builtin(stand_in, types.VarArg(types.Any))
    def lower(context: Any, builder: Any, typed: Any, values: Any) -> Any:
        called = quick.get(typed.args, function)
        linked = linkable(called, typed.args) if called is not function else None
        if linked is not None:
            return linked.call(context, builder, values)
        kind = context.typing_context.resolve_value_type(called)
        found = context.typing_context.resolve_function_type(kind, typed.args, {})
        return context.get_function(kind, found)(builder, values)

    return stand_in
