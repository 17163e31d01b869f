"""Functions of single numbers as Numba compiles them: with the powers of Python, and with own functions in place of
those that Numba does not have for numbers.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from app.derivative.powers import make_float_powers
from app.derivative.scope import function_tree
from app.functions import function_beside, python_function, unused, without_keyword_only
from app.reading import UnreadableSourceError, definition_of, parameters_of, variables_around

ValueOf = Callable[[str], Any]
"""Gives the value of a name that a function does not define itself; None if it is not known."""


def for_numba(function: FunctionType, file: str = "") -> FunctionType:
    """A function of single numbers as Numba compiles it: without keyword-only parameters and NumPy functions that it
    does not have, and with the powers of Python.

    `file` is a name under which linecache keeps the source, if that differs; by default its lines are the user's.
    """
    return _for_numba(function, function.__code__, file)  # %autoreload replaces the code


@lru_cache(maxsize=256)
def _for_numba(function: FunctionType, _: CodeType, file: str) -> FunctionType:
    ordinary = without_keyword_only(function)
    try:
        tree: Any = definition_of(function)
    except UnreadableSourceError:
        return ordinary
    inputs = [p.name for p in parameters_of(function).values() if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]
    own = call_own(tree, {**vars(builtins), **variables_around(function)}.get, NOT_OF_NUMBA)
    if not (make_float_powers(tree, inputs) or own):
        return ordinary
    if isinstance(tree, ast.Lambda):
        tree = function_tree("function", tree.args, [ast.Return(tree.body)])
    return compiled_tree(ordinary, tree, own, file)


def call_own(tree: ast.AST, value_of: ValueOf, functions: Mapping[Any, Any]) -> dict[str, Any]:
    """Let a function of single numbers call own functions in place of others; returns those that it calls by name."""
    variables = [part for part in ast.walk(tree) if isinstance(part, ast.Name)]
    local = {part.arg for part in ast.walk(tree) if isinstance(part, ast.arg)}
    local |= {part.id for part in variables if isinstance(part.ctx, ast.Store)}
    names = local.union(part.id for part in variables)
    own: dict[str, Any] = {}
    for call in [part for part in ast.walk(tree) if isinstance(part, ast.Call)]:
        if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in call.args):
            continue  # Numba has float("inf")
        function = meaning(call.func, lambda name: None if name in local else value_of(name))
        if is_one_of(function, functions):
            from numba import njit

            name = unused(functions[function].__name__.strip("_"), names)
            own[name] = njit(functions[function])
            call.func = ast.copy_location(ast.Name(name, ast.Load()), call.func)
    return own


def compiled_tree(function: Any, tree: ast.FunctionDef, more: Mapping[str, Any], file: str = "") -> FunctionType:
    """Compile the changed tree of a function; `more` are additional variables."""
    tree.decorator_list, tree.returns = [], None
    source = python_function(function)
    names = source.__code__.co_varnames[: source.__code__.co_argcount]
    tree.args = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    compiled = function_beside(source, tree, more, file)
    compiled.__defaults__ = source.__defaults__
    vars(compiled)["derived_from"] = source  # what depends on it depends on the variables of this one
    return compiled


def dividing_as(function: Any, python: FunctionType) -> Callable[..., Any]:
    """A function that divides by zero as a Numba function does: it raises, unless its error model is NumPy's."""
    options = getattr(function, "targetoptions", {})
    if not options or options.get("error_model") == "numpy":
        return python
    from numba import njit

    dispatcher: Callable[..., Any] = njit(python, error_model="python")  # else it is the caller's
    return dispatcher


def _maximum(x: Any, y: Any) -> Any:
    return x if (x >= y) | (x != x) else y


def _minimum(x: Any, y: Any) -> Any:
    return x if (x <= y) | (x != x) else y


def _clip(a: Any, a_min: Any, a_max: Any) -> Any:
    if a_min is not None:
        a = a if (a >= a_min) | (a != a) else a_min
    if a_max is not None:
        a = a if (a <= a_max) | (a != a) else a_max
    return a


def heaviside(x1: Any, x2: Any) -> Any:
    """`np.heaviside` of single numbers."""
    return 1.0 if x1 > 0 else 0.0 if x1 < 0 else x2 if x1 == 0 else x1


def _where(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def _float(x: Any) -> Any:
    return x * 1.0


def _fmod(x: Any, y: Any) -> Any:
    return np.fmod(x, y)


def _fix(x: Any) -> Any:
    return np.trunc(x)


def _cbrt(x: Any) -> Any:
    return np.cbrt(x)


def _exp2(x: Any) -> Any:
    return np.exp2(x)


NOT_OF_NUMBA: dict[Any, Any] = {
    np.where: _where,
    np.clip: _clip,
    np.heaviside: heaviside,
    float: _float,
    math.fmod: _fmod,
    np.fix: _fix,
    getattr(math, "cbrt", np.cbrt): _cbrt,  # of Python 3.11
    np.exp2: _exp2,
}
"""Functions that Numba does not have for numbers or, in the case of `float`, for truth values. Its `exp2` cannot be
compiled for two types in one function: here it is another function for each type."""
OWN = {np.maximum: _maximum, np.minimum: _minimum, **NOT_OF_NUMBA}
"""And those that some versions of Numba do not vectorise. NaN propagates, as in NumPy."""


def meaning(node: ast.AST, value_of: ValueOf) -> Any:
    """The value of a name or of a module's attribute."""
    if isinstance(node, ast.Name):
        return value_of(node.id)
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and inspect.ismodule(value_of(node.value.id))
    ):
        return getattr(value_of(node.value.id), node.attr, None)
    return None


def is_one_of(value: Any, things: Iterable[Any]) -> bool:
    """Whether a value is one of these objects. Users' values may define `==` and `hash`, so neither is called."""
    return any(value is thing for thing in things)
